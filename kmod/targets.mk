# SPDX-License-Identifier: GPL-2.0 OR MIT
# The kernel module: build, install, package, test. Included by the top Makefile.
KMOD_CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/gpupart-kmod
KMOD_PURE  := $(addprefix kmod/,chip.c engines.c memory.c order.c read.c runlists.c text.c topo.c)
KMOD_HDR   := $(addprefix kmod/,chip.h compat.h device.h regs.h text.h topo.h) \
	      include/uapi/linux/gpupart.h
KMOD_SRC   := $(KMOD_PURE) $(addprefix kmod/,device.c main.c netlink.c pci.c platform.c proc.c scheduling.c)
KMOD_FAKES := $(addprefix tests/kmod/,sleepy/Kbuild sleepy/sleepy.c fakegpu/Kbuild fakegpu/fakegpu.c fakegpu/tegra.c)
KMOD_TESTS := $(B)/tests/kmod-unit.sh $(B)/tests/kmod-pages.sh $(B)/tests/kmod-chips.sh \
	      tests/kmod/spec

$(B)/tests/kmod-unit $(B)/tests/kmod-page: $(B)/tests/kmod-%: tests/kmod/%.c $(KMOD_PURE) $(KMOD_HDR) tests/kmod/regfile.h
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=address,undefined -o $@ $< $(KMOD_PURE)

$(B)/kmod/regs/.made: tests/kmod/regfiles $(CAPTURE_SRC)
	$(call say,GEN,$(@D))
	@mkdir -p $(@D)
	$(Q)tests/kmod/regfiles $(@D) && touch $@

# Makes the list of chips from the table of chips.
$(B)/tests/kmod-chips: tests/kmod/chips.c kmod/chip.c $(KMOD_HDR)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< kmod/chip.c
hardware-chips: $(B)/tests/kmod-chips
	$(call say,GEN,Documentation/internals/$@.md)
	$(Q)$< >Documentation/internals/$@.md

# The pages that the module must show of each register file.
$(B)/kmod/pages/.made: $(B)/tests/kmod-page $(B)/kmod/regs/.made
	$(call say,GEN,$(@D))
	@mkdir -p $(@D)
	$(Q)for regs in $(B)/kmod/regs/*.regs; do \
		name=$$(basename $$regs .regs); \
		for page in topology chip engines device_info copy_topology runlists; do \
			$(B)/tests/kmod-page $$regs $$page >$(@D)/$$name.$$page || \
				case $$page in topology) ;; *) rm $(@D)/$$name.$$page;; esac; \
		done; \
	done; touch $@

# Scripts that runtests.sh can run as tests: it runs programs without arguments.
$(B)/tests/kmod-unit.sh: $(B)/tests/kmod-unit $(B)/kmod/regs/.made
	$(Q)printf '#!/bin/sh\nexec $(abspath $(B))/tests/kmod-unit $(abspath $(B))/kmod/regs/*.regs\n' >$@ && chmod +x $@
$(B)/tests/kmod-pages.sh: $(B)/tests/kmod-page $(B)/kmod/regs/.made tests/kmod/pages
	$(Q)printf '#!/bin/sh\nexec $(CURDIR)/tests/kmod/pages $(abspath $(B))/tests/kmod-page $(abspath $(B))/kmod/regs\n' >$@ && chmod +x $@

# Builds the module for the running kernel, or for the kernel in KDIR=.
modules:
	$(call say,MODULES,kmod)
	$(Q)$(MAKE) --no-print-directory -s -C kmod $(if $(KDIR),KDIR=$(KDIR)) modules

modules_install: modules
	$(call say,INSTALL,gpupart.ko)
	$(Q)$(MAKE) --no-print-directory -s -C kmod $(if $(KDIR),KDIR=$(KDIR)) \
		$(if $(DESTDIR),INSTALL_MOD_PATH=$(abspath $(DESTDIR))) modules_install

# Puts the sources into the directory of DKMS. The next step is: dkms install gpupart/VERSION.
dkms_dir ?= /usr/src
modulesload_dir ?= /usr/lib/modules-load.d
dkms:
	$(call say,INSTALL,"$(DESTDIR)$(dkms_dir)/gpupart-$(VERSION)")
	$(Q)grep -q '^PACKAGE_VERSION="$(VERSION)"$$' kmod/dkms.conf || { echo "kmod/dkms.conf is not of $(VERSION)" >&2; exit 1; }
	$(Q)grep -q '^MODULE_VERSION("$(VERSION)");$$' kmod/main.c || { echo "kmod/main.c is not of $(VERSION)" >&2; exit 1; }
	$(Q)install -d "$(DESTDIR)$(dkms_dir)/gpupart-$(VERSION)/kmod" "$(DESTDIR)$(dkms_dir)/gpupart-$(VERSION)/include/uapi/linux"
	$(Q)install -m 644 kmod/*.[ch] kmod/Kbuild kmod/Makefile "$(DESTDIR)$(dkms_dir)/gpupart-$(VERSION)/kmod"
	$(Q)install -m 644 kmod/dkms.conf LICENSE "$(DESTDIR)$(dkms_dir)/gpupart-$(VERSION)"
	$(Q)install -D -m 644 share/modules-load.d/gpupart.conf "$(DESTDIR)$(modulesload_dir)/gpupart.conf"
	$(Q)install -m 644 include/uapi/linux/gpupart.h "$(DESTDIR)$(dkms_dir)/gpupart-$(VERSION)/include/uapi/linux"

# Guests. When a test needs a kernel, its packages are fetched and the module is built for it.
KMOD_GUESTS := $(B)/tests/kmod-guest-6.1.sh $(B)/tests/kmod-guest-6.12.sh
KMOD_PARTS  := pages plug netlink runlists ynl library power cache others vfio suspend tegra try faults leaks

$(B)/kmod/%/.built: $(KMOD_SRC) $(KMOD_HDR) kmod/Kbuild $(KMOD_FAKES) tests/kmod/kernels tests/kmod/build
	$(Q)nice tests/kmod/kernels $* >/dev/null
	$(call say,MODULE,gpupart.ko.$*)
	$(Q)nice tests/kmod/build $* $(abspath $(@D)) && \
		nice tests/kmod/build $* $(abspath $(@D)) tests/kmod/sleepy && \
		nice tests/kmod/build $* $(abspath $(@D)) tests/kmod/fakegpu && touch $@
.PRECIOUS: $(B)/kmod/%/.built

# Programs that run in the guest. They are static, because the guest has no libraries.
$(addprefix $(B)/kmod/guest/,gpunl failnth vfio): $(B)/kmod/guest/%: tests/kmod/%.c include/uapi/linux/gpupart.h
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -static -o $@ $<

$(B)/kmod/guest/kerneltopo $(B)/kmod/guest/engineuse: $(B)/kmod/guest/%: tests/kmod/%.c $(B)/lib/libgpupart.a
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -static -o $@ $< $(B)/lib/libgpupart.a $(LIBS) 2>$@.log || { cat $@.log >&2; exit 1; }
	$(Q)rm $@.log

$(B)/tests/kmod-guest-%.sh: $(B)/kmod/%/.built $(B)/kmod/pages/.made $(B)/kmod/guest/gpunl \
		$(B)/kmod/guest/kerneltopo $(B)/kmod/guest/engineuse $(B)/kmod/guest/failnth $(B)/kmod/guest/vfio tests/kmod/guest scripts/try-module tests/kmod/ynl.py tests/kmod/vm
	$(Q)printf '#!/bin/sh\nexec $(CURDIR)/tests/kmod/guest $* $(abspath $(B)) $${KMOD_PARTS:-$(if $(filter debug,$*),$(filter-out ynl,$(KMOD_PARTS)),$(KMOD_PARTS))}\n' >$@ && chmod +x $@

# arm64, on QEMU's virt machine. The guest's programs are cross-built. It has no Python for ynl.
$(B)/tests/kmod-guest-%-arm64.sh: $(B)/kmod/%-arm64/.built $(B)/kmod/pages/.made tests/kmod/guest tests/kmod/vm-arm64
	@root=$$(tests/arm64/sysroot) && $(MAKE) -s CROSS_COMPILE=aarch64-linux-gnu- SYSROOT="$$root" \
		B=$(B)/arm64 $(patsubst %,$(B)/arm64/kmod/guest/%,gpunl failnth kerneltopo engineuse)
	$(Q)printf '#!/bin/sh\nexec $(CURDIR)/tests/kmod/guest $*-arm64 $(abspath $(B)) $${KMOD_PARTS:-$(filter-out ynl,$(KMOD_PARTS))}\n' >$@ && chmod +x $@

$(B)/tests/kmod-chips.sh: $(B)/tests/kmod-chips Documentation/internals/hardware-chips.md
	$(Q)printf '#!/bin/sh\n%s | cmp - %s && echo "ok 1 - Documentation/internals/hardware-chips.md is the table" && echo 1..1\n' \
		$(abspath $<) $(CURDIR)/Documentation/internals/hardware-chips.md >$@ && chmod +x $@

$(B)/tests/kmod-guest-%-quick.sh: $(B)/tests/kmod-guest-%.sh
	$(Q)printf '#!/bin/sh\nKMOD_PARTS="library tegra" exec $(abspath $<)\n' >$@ && chmod +x $@

$(B)/tests/kmod-guest-%-awake.sh: $(B)/tests/kmod-guest-%.sh
	$(Q)printf '#!/bin/sh\nKMOD_PARTS="$(filter-out suspend,$(KMOD_PARTS))" exec $(abspath $<)\n' >$@ && chmod +x $@

# Uses 2 and 4 processors, to find errors that only races show.
KMOD_SMP_PARTS := plug netlink runlists power cache others vfio faults leaks
$(B)/tests/kmod-guest-%-smp2.sh $(B)/tests/kmod-guest-%-smp4.sh: $(B)/tests/kmod-guest-%.sh
	$(Q)for n in 2 4; do printf '#!/bin/sh\nVM_MEMORY=1024 VM_SMP=%d exec $(CURDIR)/tests/kmod/guest $* $(abspath $(B)) $(KMOD_SMP_PARTS)\n' $$n \
		>$(B)/tests/kmod-guest-$*-smp$$n.sh && chmod +x $(B)/tests/kmod-guest-$*-smp$$n.sh || exit; done

# Uses an IOMMU, for vfio-pci. If QEMU 7.2 also has x-pci-proxy-dev, it sometimes crashes before a
# test, when the kernel switches the IOMMU on. The guest then boots again.
$(B)/tests/kmod-guest-%-vfio.sh: $(B)/tests/kmod-guest-%.sh
	$(Q)printf '#!/bin/sh\nfor try in 1 2 3 4 5 6; do\n\tVM_IOMMU=1 $(CURDIR)/tests/kmod/guest $* $(abspath $(B)) vfio others >$(abspath $@).log\n\tstatus=$$?\n\tgrep -q "^ok" $(abspath $@).log && break\ndone\ncat $(abspath $@).log\nexit $$status\n' >$@ && chmod +x $@

# Tests the files that also build for user space. This takes seconds and needs no kernel.
check-kmod-pure: $(KMOD_TESTS)
	@tests/runtests.sh $(KMOD_TESTS)

# Also tests the module itself in virtual machines, as many at a time as there are processors.
# VM_TIMEOUT=, TEST_TIMEOUT= (s): for a busy machine.
KMOD_RUN := VM_TIMEOUT=$${VM_TIMEOUT:-900} TEST_TIMEOUT=$${TEST_TIMEOUT:-1000} TEST_JOBS=$${TEST_JOBS:-$$(nproc)} \
	    tests/runtests.sh
check-kmod: $(KMOD_TESTS) $(KMOD_GUESTS)
	@$(KMOD_RUN) $^

# Runs the same tests on a kernel with KASAN, UBSAN, lockdep, kmemleak and fault injection. This
# kernel is built once, which takes some minutes, and is kept.
check-kmod-debug: $(B)/tests/kmod-guest-debug.sh $(B)/tests/kmod-guest-debug-smp4.sh
	@VM_TIMEOUT=$${VM_TIMEOUT:-2400} TEST_TIMEOUT=$${TEST_TIMEOUT:-2500} tests/runtests.sh $^

# On arm64. "quick" tests the library with the module's answers, and integrated GPUs. "both" is for
# scripts/check. It is check-kmod with the quick test of arm64, but with only one guest that
# suspends. "both-build" builds everything that "both" runs.
check-kmod-arm64: $(B)/tests/kmod-guest-6.1-arm64.sh $(B)/tests/kmod-guest-6.12-arm64.sh
check-kmod-arm64-quick: $(B)/tests/kmod-guest-6.1-arm64-quick.sh
check-kmod-both check-kmod-both-build: $(KMOD_TESTS) $(B)/tests/kmod-guest-6.12.sh $(B)/tests/kmod-guest-6.1-awake.sh $(B)/tests/kmod-guest-6.1-arm64-quick.sh
check-kmod-smp: $(B)/tests/kmod-guest-6.1-smp2.sh $(B)/tests/kmod-guest-6.1-smp4.sh
check-kmod-vfio: $(B)/tests/kmod-guest-6.1-vfio.sh $(B)/tests/kmod-guest-6.12-vfio.sh
check-kmod-arm64 check-kmod-arm64-quick check-kmod-both check-kmod-smp check-kmod-vfio:
	@$(KMOD_RUN) $^

# The oldest kernel and the newest that Debian has, which is built once; the newest checkpatch.
check-kmod-compat: $(B)/tests/kmod-guest-5.10.sh $(B)/tests/kmod-guest-newest.sh tests/kmod/style
	@$(KMOD_RUN) $^

.PHONY: hardware-chips modules modules_install dkms check-kmod-pure check-kmod check-kmod-debug \
	check-kmod-compat check-kmod-arm64 check-kmod-arm64-quick check-kmod-both \
	check-kmod-both-build check-kmod-smp check-kmod-vfio
