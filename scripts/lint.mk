# SPDX-License-Identifier: MIT
# make lint: form and layers of the files, the test that lint can fail, and the scripts' own
# test. Included by the top Makefile. Layers are checked by symbols too, so all is built first.
lint: all $(B)/tests/list-layouts
	@TEST_TIMEOUT=600 TEST_JOBS=$$(nproc) tests/runtests.sh scripts/lint scripts/check-layering tests/lint.sh tests/scripts.sh
