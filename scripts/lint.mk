# SPDX-License-Identifier: MIT
# make lint: checks the form and the layers of the files, that each rule can fail, and the scripts.
# Included by the top Makefile. Layers are also checked by symbols, so everything is built first.
lint: all $(B)/tests/list-layouts
	@TEST_TIMEOUT=600 TEST_JOBS=$$(nproc) tests/runtests.sh scripts/lint scripts/check-layering tests/lint.sh tests/scripts.sh
