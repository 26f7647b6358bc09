# SPDX-License-Identifier: MIT
# make lint: form and layers of the files, and the test that lint can fail. Included by the
# top Makefile. The objects are needed because layers are also checked by symbols.
lint: all $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/list-layouts.c))
	@TEST_TIMEOUT=600 tests/runtests.sh scripts/lint scripts/check-layering tests/lint.sh
