# SPDX-License-Identifier: MIT
# make lint: form and layers of the files, the test that lint can fail, and the scripts' own
# test. Included by the top Makefile. Layers are checked by symbols too, so all is built first.
lint: all $(B)/tests/list-layouts
	@TEST_TIMEOUT=600 tests/runtests.sh scripts/lint scripts/check-layering tests/lint.sh tests/scripts.sh

# The README's support matrix is made of what this prints.
$(B)/tests/list-layouts: tests/list-layouts.c lib/tmd_layout.h $(B)/obj/lib/tmd_layout.o
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Ilib -o $@ $(filter %.c %.o,$^)
