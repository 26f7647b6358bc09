# SPDX-License-Identifier: MIT
# make lint: checks the form and the layers of the files, checks that each rule can fail, and
# checks the scripts. The top Makefile includes this file. The check of the layers reads the
# symbols of object files, so everything is built first.
lint: all $(B)/tests/list-layouts
	@TEST_TIMEOUT=600 TEST_JOBS=$$(nproc) tests/runtests.sh scripts/lint scripts/check-layering tests/lint.sh tests/scripts.sh
