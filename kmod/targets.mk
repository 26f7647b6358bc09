# SPDX-License-Identifier: MIT
# The kernel module: build, install, package, test. Included by the top Makefile.
KMOD_CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/gpupart-kmod
KMOD_PURE  := kmod/chip.c kmod/topo.c kmod/text.c
KMOD_HDR   := $(wildcard kmod/*.h) include/uapi/linux/gpupart.h
KMOD_TESTS := $(B)/tests/kmod-unit.sh $(B)/tests/kmod-pages.sh

$(B)/tests/kmod-unit $(B)/tests/kmod-page: $(B)/tests/kmod-%: tests/kmod/%.c $(KMOD_PURE) $(KMOD_HDR) tests/kmod/regfile.h
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=address,undefined -o $@ $< $(KMOD_PURE)

$(B)/kmod/regs/.made: tests/kmod/regfiles $(wildcard tests/data/gh100-*/capture.txt)
	$(call say,GEN,$(@D))
	@mkdir -p $(@D)
	$(Q)tests/kmod/regfiles $(@D) && touch $@

# As tests of runtests.sh, which takes programs without arguments.
$(B)/tests/kmod-unit.sh: $(B)/tests/kmod-unit $(B)/kmod/regs/.made
	$(Q)printf '#!/bin/sh\nexec $(abspath $(B))/tests/kmod-unit $(abspath $(B))/kmod/regs/*.regs\n' >$@ && chmod +x $@
$(B)/tests/kmod-pages.sh: $(B)/tests/kmod-page $(B)/kmod/regs/.made tests/kmod/pages
	$(Q)printf '#!/bin/sh\nexec $(CURDIR)/tests/kmod/pages $(abspath $(B))/tests/kmod-page $(abspath $(B))/kmod/regs\n' >$@ && chmod +x $@

# The pure files in user space: seconds, no kernel needed.
check-kmod-pure: $(KMOD_TESTS)
	@tests/runtests.sh $(KMOD_TESTS)

.PHONY: check-kmod-pure
