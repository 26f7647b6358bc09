# SPDX-License-Identifier: MIT
# Builds the libraries, programs and manual pages. Prints one line for each step; V=1 shows the
# commands.
VERSION	:= 0.2.0
SONAME	:= libgpupart.so.0
MANAGE_SONAME := libgpupart-manage.so.0

prefix	?= /usr/local
bindir	?= $(prefix)/bin
libdir	?= $(prefix)/lib
includedir ?= $(prefix)/include
datadir	?= $(prefix)/share
mandir	?= $(datadir)/man
docdir	?= $(datadir)/doc/gpupart
unitdir	?= $(prefix)/lib/systemd/system
bashcompdir ?= $(datadir)/bash-completion/completions
zshcompdir ?= $(datadir)/zsh/site-functions
PYTHON	?= python3
# The folder in $(prefix) where $(PYTHON) searches modules. Another Python may search elsewhere.
pythondir ?= $(shell $(PYTHON) -c 'import site, sys; p = sys.argv[1] + "/lib/"; \
	print(next((d for d in site.getsitepackages() if d.startswith(p)), \
	p + "python%d.%d/site-packages" % sys.version_info[:2]))' '$(prefix)')
DESTDIR	?=

CC	?= gcc
CFLAGS	?= -O2 -g
# Cross compilation: CROSS_COMPILE=aarch64-linux-gnu- B=build/arm64. SYSROOT= names the folder of
# the target's libraries, if they are not in this machine's multiarch folders. Generators run on
# this machine.
ifneq ($(CROSS_COMPILE),)
CC	:= $(CROSS_COMPILE)gcc
AR	:= $(CROSS_COMPILE)ar
HOSTCC	?= gcc
endif
HOSTCC	?= $(CC)
ifneq ($(SYSROOT),)
CC	+= --sysroot=$(SYSROOT)
endif
NL_CFLAGS := -isystem $(SYSROOT)/usr/include/libnl3
# No contraction: fused multiply and add would round differently on some machines. Pictures, plans
# and the simulated GPU are the same on all machines.
ALL_CFLAGS := -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Wshadow -Wformat=2 -ffp-contract=off \
	      -fvisibility=hidden -fno-semantic-interposition -ffunction-sections -fPIC \
	      -iquote . -Iinclude -Iinclude/uapi -D_GNU_SOURCE \
	      -DGPUPART_VERSION='"$(VERSION)"' -DGPUPART_DATADIR='"$(datadir)/gpupart"' $(CFLAGS)

B	:= build
# Libraries that the library needs: netlink, for the source "kernel".
LIBS	:= -lnl-genl-3 -lnl-3 -ldl -lpthread
ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
endif

# Lists of sources. Includes are relative to this folder: "lib/topo/topology.h".
include lib/sources.mk sim/sources.mk cli/sources.mk slurm/sources.mk kubernetes/sources.mk share/sources.mk tests/sources.mk

LIB_OBJ	   := $(LIB_SRC:%.c=$(B)/obj/%.o)
# The simulated driver uses only the library's reader of captures.
SIM_OBJ	   := $(SIM_SRC:%.c=$(B)/obj/%.o) \
	      $(addprefix $(B)/obj/,lib/core/ctx.o lib/topo/set_format.o lib/topo/topology.o) \
	      $(addprefix $(B)/obj/lib/topo/,capture.o capture_read.o)
# The installed driver has no fault injection; the one in the build folder has it, for tests
# (sim/cuda/fault.c).
SIM_PLAIN  := $(B)/plain/libcuda.so.1
SIM_NVML_PLAIN := $(B)/plain/libnvidia-ml.so.1
SIM_PLAIN_OBJ := $(B)/obj/plain/fault.o
# The simulated management library gets its GPUs from the simulated driver.
SIM_NVML_OBJ := $(SIM_NVML_SRC:%.c=$(B)/obj/%.o) $(SIM_OBJ)
# The scheduling pipeline: a library, linked into the simulated driver and into programs that run
# scenarios.
PIPE_OBJ   := $(PIPE_SRC:%.c=$(B)/obj/%.o)
PIPE	   := $(B)/obj/sim/pipe/pipe.a
# The QoS policy: also a library.
QOS_OBJ	   := $(QOS_SRC:%.c=$(B)/obj/%.o)
QOS	   := $(B)/obj/cli/qos/policy/qos.a
INJECT_OBJ := $(INJECT_SRC:%.c=$(B)/obj/%.o) $(B)/obj/lib/core/environment.o
PROGRAM_OBJ := $(LIB_PROGRAM_SRC:%.c=$(B)/obj/%.o)
MANAGE_OBJ := $(LIB_MANAGE_SRC:%.c=$(B)/obj/%.o)
# The library that changes NVML's answers; it contains only the ledger reader of the library.
NVML_OBJ   := $(NVML_SRC:%.c=$(B)/obj/%.o) \
	      $(addprefix $(B)/obj/,lib/ledger/query.o lib/ledger/file.o lib/core/environment.o lib/core/fork.o lib/core/state_dir.o lib/core/shared_header.o lib/core/symbols.o)
SMCTRL_OBJ := $(SMCTRL_SRC:%.c=$(B)/obj/%.o)
CLI_OBJ	   := $(CLI_SRC:%.c=$(B)/obj/%.o)
CAPTURES   := $(patsubst tests/data/gh100-%/capture.txt,$(B)/share/gpupart/captures/%.capture,$(CAPTURE_SRC)) \
	      $(B)/share/gpupart/captures/h200.capture

SCENARIOS  := $(patsubst share/%,$(B)/share/gpupart/%,$(SCENARIO_SRC))

HEADERS	   := include/gpupart.h include/gpupart_manage.h include/gpupart_tpcset.h
# Manual pages of the public functions, generated from the headers; each example is a program.
MAN3	   := $(B)/man/man3/.made

LIBGPUPART := $(B)/lib/libgpupart.so
INJECT	   := $(B)/lib/gpupart/libgpupart-inject.so
NVML	   := $(B)/lib/gpupart/libgpupart-nvml.so
SIM	   := $(B)/lib/gpupart/sim/libcuda.so.1
SIM_NVML   := $(B)/lib/gpupart/sim/libnvidia-ml.so.1
SMCTRL	   := $(B)/lib/libsmctrl.so
CLI	   := $(B)/bin/gpupart
# The HTTP server of metrics, built if libmicrohttpd's headers are installed.
HTTP_OBJ   := $(HTTP_SRC:%.c=$(B)/obj/%.o)
ifneq ($(wildcard $(SYSROOT)/usr/include/microhttpd.h),)
HTTP	   := $(B)/lib/gpupart/libgpupart-http.so
endif
# The Slurm plugin, built if Slurm's headers are installed. It contains the library, so that
# slurmd's processes load no other file.
SPANK_OBJ  := $(SPANK_SRC:%.c=$(B)/obj/%.o)
SPANK	   := $(B)/lib/gpupart/gpupart_spank.so
SLURM_LUA  := $(B)/lib/gpupart/gpupart.lua
SLURM_HEALTH := $(B)/lib/gpupart/slurm-health
ifneq ($(wildcard $(SYSROOT)/usr/include/slurm/spank.h),)
ifeq ($(CROSS_COMPILE),)
SLURM	   := $(SPANK) $(SLURM_LUA) $(SLURM_HEALTH)
endif
endif

# The device plugin for Kubernetes, built if its libraries are installed. protoc-c generates a
# header, which is included by its name.
KUBERNETES_OBJ := $(KUBERNETES_SRC:%.c=$(B)/obj/%.o) $(B)/gen/kubelet.pb-c.o
KUBERNETES_LIB := $(SYSROOT)/usr/lib/$(or $(CROSS_COMPILE:%-=%),*)/libnghttp2.so
ifneq ($(and $(wildcard $(KUBERNETES_LIB)),$(wildcard $(SYSROOT)/usr/include/nghttp2/nghttp2.h),$(wildcard $(SYSROOT)/usr/include/protobuf-c/protobuf-c.h),$(shell command -v protoc-c)),)
KUBERNETES := $(B)/bin/gpupart-device-plugin
endif
# The command without its cmd_*.c files, for programs that are linked with parts of it.
CLI_PARTS  := $(B)/obj/cli/parts.a

all: $(LIBGPUPART) $(B)/lib/libgpupart.a $(INJECT) $(NVML) $(SMCTRL) $(B)/lib/libsmctrl.a $(SIM) $(SIM_NVML) \
	$(SIM_PLAIN) $(SIM_NVML_PLAIN) \
	$(CLI) $(HTTP) $(CAPTURES) $(SCENARIOS) $(SLURM) $(KUBERNETES)

# tests/Makefile.inc builds tests, benchmarks and fuzz targets.
include tests/Makefile.inc
include kmod/targets.mk
include scripts/lint.mk

$(B)/obj/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

ifneq ($(filter -O2,$(CFLAGS)),)
# gcc has -Oz from version 12 on.
SMALL := $(shell $(CC) -Oz -E -xc /dev/null >/dev/null 2>&1 && echo -Oz || echo -Os)
$(filter-out $(LIB_FAST_SRC:%.c=$(B)/obj/%.o),$(PROGRAM_OBJ) $(INJECT_OBJ)): ALL_CFLAGS += $(SMALL)
# Code that runs at a launch with a set: optimized for speed.
$(B)/obj/lib/confine/scope.o: SMALL := -Os
$(LIB_FAST_SRC:%.c=$(B)/obj/%.o): ALL_CFLAGS += -falign-functions=1 -falign-loops=1 -falign-jumps=1 -fno-tree-slp-vectorize
endif

$(SIM_PLAIN_OBJ): sim/cuda/fault.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/obj/sim/cuda/fault.o: ALL_CFLAGS += -DSIM_FAULTS
$(B)/obj/lib/topo/source_netlink.o $(B)/obj/lib/topo/engine_use.o: ALL_CFLAGS += $(NL_CFLAGS)
$(B)/obj/lib/confine/probe.o: $(B)/obj/lib/confine/probe.ptx $(B)/obj/lib/confine/probe_cluster.ptx
$(B)/obj/lib/confine/probe.o: ALL_CFLAGS += -Wa,-I,$(B)/obj/lib/confine
# Every confined program contains this text, so comments and blanks are removed.
$(B)/obj/%.ptx: %.ptx
	@mkdir -p $(@D)
	$(Q)sed -E 's,//.*,,; s/[[:blank:]]+/ /g; s/^ //; s/ $$//; /^$$/d' $< >$@
$(B)/obj/cli/trace/gpu.o: cli/trace/trace.ptx
$(B)/obj/cli/bench/launch.o: cli/bench/kernels.ptx
# The launch path uses TLS that needs no function call.
$(B)/obj/lib/driver/callback.o $(B)/obj/lib/confine/launch.o $(B)/obj/lib/confine/lend.o $(B)/obj/lib/confine/scope.o $(B)/obj/lib/confine/graph.o $(B)/obj/lib/confine/graph_nodes.o $(B)/obj/lib/confine/watched_functions.o $(B)/obj/lib/confine/stream.o $(B)/obj/lib/records/ring.o $(B)/obj/lib/memory/intercept.o: ALL_CFLAGS += -ftls-model=initial-exec

$(PIPE): $(PIPE_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(QOS): $(QOS_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# A linker script: -lgpupart finds both libraries, and a program depends only on those that it
# uses.
$(LIBGPUPART): lib/libgpupart.ld $(B)/lib/$(SONAME) $(B)/lib/$(MANAGE_SONAME)
	$(Q)cp --remove-destination $< $@

# nodelete: the driver keeps the callback's address permanently.
$(B)/lib/$(SONAME): $(PROGRAM_OBJ) lib/gpupart.map
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,lib/gpupart.map \
		-Wl,--gc-sections,-Bsymbolic-functions,-z,nodelete,-z,defs,-z,relro,-z,now -o $@ $(PROGRAM_OBJ) \
		-ldl -lpthread

$(B)/lib/$(MANAGE_SONAME): $(MANAGE_OBJ) lib/manage.map $(B)/lib/$(SONAME)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(MANAGE_SONAME) -Wl,--version-script,lib/manage.map \
		-Wl,--gc-sections,-rpath,'$$ORIGIN' -Wl,-z,defs,-z,relro,-z,now -o $@ $(MANAGE_OBJ) \
		$(B)/lib/$(SONAME) $(LIBS)

# A small library that depends on the same libraries as a program, so that a process loads each
# once.
$(INJECT): $(INJECT_OBJ) $(B)/lib/$(SONAME)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,--gc-sections,-soname,libgpupart-inject.so -Wl,-rpath,'$$ORIGIN/..' \
		-Wl,-z,defs,-z,relro,-z,now -o $@ $(INJECT_OBJ) $(B)/lib/$(SONAME) -ldl

$(B)/lib/libgpupart.a: $(LIB_OBJ)
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

# The loader opens this library in a separate namespace, with libc only.
$(NVML): $(NVML_OBJ) lib/nvml/nvml.map
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libgpupart-nvml.so -Wl,--version-script,lib/nvml/nvml.map \
		-Wl,-z,defs,-z,relro,-z,now -o $@ $(NVML_OBJ)

# The predecessor has no soname, so programs search for the file name; this file has that name.
# nodelete: threads that set a mask call it when they end.
$(SMCTRL): $(SMCTRL_OBJ) $(LIBGPUPART)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libsmctrl.so -Wl,-rpath,'$$ORIGIN' \
		-Wl,-z,nodelete,-z,defs,-z,relro,-z,now -o $@ $(SMCTRL_OBJ) -L$(B)/lib -lgpupart -ldl -lpthread

$(B)/lib/libsmctrl_objects.a: $(filter-out %/inject.o,$(SMCTRL_OBJ))
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# A linker script: programs of the predecessor link only -l:libsmctrl.a.
$(B)/lib/libsmctrl.a: $(B)/lib/libsmctrl_objects.a
	$(call say,GEN,$@)
	$(Q)echo 'INPUT ( -l:libsmctrl_objects.a AS_NEEDED ( -lgpupart ) )' >$@

$(SIM): $(SIM_OBJ)
$(SIM_PLAIN): $(SIM_OBJ:%/sim/cuda/fault.o=%/plain/fault.o)
$(SIM) $(SIM_PLAIN): $(PIPE) sim/cuda/libcuda.map
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script,sim/cuda/libcuda.map \
		-Wl,-z,nodelete,-z,defs,-z,relro,-z,now -o $@ $(filter %.o,$^) $(PIPE) -ldl -lpthread

$(SIM_NVML): $(SIM_NVML_OBJ)
$(SIM_NVML_PLAIN): $(SIM_NVML_OBJ:%/sim/cuda/fault.o=%/plain/fault.o)
$(SIM_NVML) $(SIM_NVML_PLAIN): $(PIPE) sim/nvml/libnvidia-ml.map
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,--version-script,sim/nvml/libnvidia-ml.map \
		-Wl,-z,defs,-z,relro,-z,now -o $@ $(filter %.o,$^) $(PIPE) -ldl -lpthread

# The plugin and Slurm do not see each other's symbols.
$(SPANK): $(SPANK_OBJ) $(B)/lib/libgpupart.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,gpupart_spank.so -Wl,--exclude-libs,ALL -Wl,-Bsymbolic \
		-Wl,-z,relro,-z,now -o $@ $(SPANK_OBJ) $(B)/lib/libgpupart.a $(LIBS)

$(SLURM_LUA) $(SLURM_HEALTH): $(B)/lib/gpupart/%: slurm/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(CLI): $(CLI_OBJ) $(PIPE) $(QOS) $(LIBGPUPART)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(CLI_OBJ) $(PIPE) $(QOS) -L$(B)/lib -lgpupart -ljansson -lyaml -lncursesw -ltinfo -ldl -lpthread -lm \
		-Wl,-rpath,'$$ORIGIN/../lib' -Wl,-z,relro,-z,now

# Only `gpupart metrics --listen` opens this library: no other command loads its dependencies.
$(B)/lib/gpupart/libgpupart-http.so: $(HTTP_OBJ)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libgpupart-http.so -Wl,-z,defs,-z,relro,-z,now -o $@ $^ -lmicrohttpd

$(CLI_PARTS): $(filter-out $(B)/obj/cli/bench/%.o,$(CLI_PARTS_SRC:%.c=$(B)/obj/%.o))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: kubernetes/%.proto
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)protoc-c --proto_path=kubernetes --c_out=$(@D) $<

$(B)/gen/%.o: $(B)/gen/%.c
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(KUBERNETES_SRC:%.c=$(B)/obj/%.o): ALL_CFLAGS += -I$(B)/gen
$(KUBERNETES_SRC:%.c=$(B)/obj/%.o): | $(B)/gen/kubelet.pb-c.h
$(KUBERNETES): $(KUBERNETES_OBJ) $(B)/obj/slurm/node_file.o $(B)/obj/slurm/node_lock.o $(CLI_PARTS) $(LIBGPUPART)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(CLI_PARTS) -L$(B)/lib -lgpupart -lnghttp2 -lprotobuf-c -ljansson -lyaml \
		-ldl -lpthread -lm -Wl,--gc-sections,-rpath,'$$ORIGIN/../lib' -Wl,-z,relro,-z,now

# sample:h200 is board b, which has board a's tables and also measured bits.
$(B)/share/gpupart/captures/h200.capture: tests/data/gh100-h200-b/capture.txt
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(B)/share/gpupart/captures/%.capture: tests/data/gh100-%/capture.txt
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(B)/share/gpupart/scenarios/%.yaml: share/scenarios/%.yaml
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(MAN3): scripts/man3.py $(HEADERS) $(MAN_EXAMPLE_SRC)
	$(call say,GEN,$(@D))
	@rm -rf $(@D) && mkdir -p $(@D)
	$(Q)$(PYTHON) scripts/man3.py Documentation/man/examples $(@D) $(HEADERS) && touch $@

# A program with libgpupart.a can be in any folder. It finds samples in a compiled-in folder,
# which the prefix= of install may have changed.
install: all $(MAN3)
	$(call say,INSTALL,"$(DESTDIR)$(prefix)")
	$(Q)install -d "$(DESTDIR)$(bindir)" "$(DESTDIR)$(libdir)/gpupart/sim" "$(DESTDIR)$(libdir)/pkgconfig" \
		"$(DESTDIR)$(includedir)/linux" "$(DESTDIR)$(datadir)/gpupart/captures" "$(DESTDIR)$(datadir)/gpupart/scenarios" \
		$(foreach n,1 3 4 7 8,"$(DESTDIR)$(mandir)/man$n") "$(DESTDIR)$(unitdir)" "$(DESTDIR)$(bashcompdir)" \
		"$(DESTDIR)$(zshcompdir)" "$(DESTDIR)$(docdir)/examples/engine" "$(DESTDIR)$(datadir)/gpupart/completion"
	$(Q)install -m 755 $(CLI) "$(DESTDIR)$(bindir)/gpupart"
	$(Q)install -m 755 $(B)/lib/$(SONAME) $(B)/lib/$(MANAGE_SONAME) "$(DESTDIR)$(libdir)"
	$(Q)install -m 644 $(LIBGPUPART) "$(DESTDIR)$(libdir)/libgpupart.so"
	$(Q)install -m 644 $(B)/lib/libgpupart.a "$(DESTDIR)$(libdir)/libgpupart.a"
	$(Q)grep -qaF '$(datadir)/gpupart/captures' $(B)/lib/libgpupart.a || { dir=$$(mktemp -d) && \
		$(CC) $(ALL_CFLAGS) -c -o $$dir/sample.o lib/topo/sample.c && \
		$(AR) rs "$(DESTDIR)$(libdir)/libgpupart.a" $$dir/sample.o && rm -r $$dir; }
	$(Q)install -m 755 $(INJECT) "$(DESTDIR)$(libdir)/gpupart/libgpupart-inject.so"
	$(Q)install -m 755 $(NVML) "$(DESTDIR)$(libdir)/gpupart/libgpupart-nvml.so"
	$(Q)install -m 755 $(SMCTRL) "$(DESTDIR)$(libdir)/libsmctrl.so"
	$(Q)install -m 644 $(B)/lib/libsmctrl.a $(B)/lib/libsmctrl_objects.a "$(DESTDIR)$(libdir)"
	$(Q)install -m 644 include/libsmctrl.h "$(DESTDIR)$(includedir)/libsmctrl.h"
	$(Q)install -m 755 $(SIM_PLAIN) "$(DESTDIR)$(libdir)/gpupart/sim/libcuda.so.1"
	$(Q)install -m 755 $(SIM_NVML_PLAIN) "$(DESTDIR)$(libdir)/gpupart/sim/libnvidia-ml.so.1"
	$(Q)for f in $(HTTP); do install -m 755 "$$f" "$(DESTDIR)$(libdir)/gpupart/" || exit; done
	$(Q)for f in $(KUBERNETES); do install -m 755 "$$f" "$(DESTDIR)$(bindir)" && sed 's|@bindir@|$(bindir)|' share/systemd/$${f##*/}.service \
		>"$(DESTDIR)$(unitdir)/$${f##*/}.service" || exit; done
	$(Q)for f in $(SLURM); do install -m 755 "$$f" "$(DESTDIR)$(libdir)/gpupart/" || exit; done
	$(Q)install -m 644 $(HEADERS) "$(DESTDIR)$(includedir)"
	$(Q)install -m 644 include/uapi/linux/gpupart.h "$(DESTDIR)$(includedir)/linux/gpupart.h"
	$(Q)install -m 644 $(CAPTURES) "$(DESTDIR)$(datadir)/gpupart/captures"
	$(Q)install -m 644 $(SCENARIOS) "$(DESTDIR)$(datadir)/gpupart/scenarios"
	$(Q)for page in $(MAN_SRC); do \
		install -m 644 $$page "$(DESTDIR)$(mandir)/man$${page##*.}" || exit; done
	$(Q)cp -dR --no-preserve=ownership $(B)/man/man3/*.3 "$(DESTDIR)$(mandir)/man3"
	$(Q)install -m 755 share/completion/words "$(DESTDIR)$(datadir)/gpupart/completion/words"
	$(Q)sed 's|@datadir@|$(datadir)|' share/completion/gpupart.bash >"$(DESTDIR)$(bashcompdir)/gpupart"
	$(Q)sed 's|@datadir@|$(datadir)|' share/completion/_gpupart >"$(DESTDIR)$(zshcompdir)/_gpupart"
	$(Q)for f in gpupart-qos@.service gpupart-cdi.service gpupart-cdi.path; do \
		sed 's|@bindir@|$(bindir)|; s|@libdir@|$(libdir)|' share/systemd/$$f >"$(DESTDIR)$(unitdir)/$$f" || exit; done
	$(Q)install -m 644 share/systemd/gpupart-mps.service "$(DESTDIR)$(unitdir)/gpupart-mps.service"
	$(Q)sed 's|@bindir@|$(bindir)|' share/systemd/gpupart-metrics.service >"$(DESTDIR)$(unitdir)/gpupart-metrics.service"
	$(Q)install -d "$(DESTDIR)$(datadir)/gpupart/grafana"
	$(Q)install -m 644 share/grafana/gpupart.json "$(DESTDIR)$(datadir)/gpupart/grafana/gpupart.json"
	$(Q)install -m 644 $(EXAMPLE_SRC) "$(DESTDIR)$(docdir)/examples"
	$(Q)install -m 644 $(ENGINE_SRC) "$(DESTDIR)$(docdir)/examples/engine"
	$(Q)sed 's|@bindir@|$(bindir)|' share/systemd/drop-in.conf >"$(DESTDIR)$(docdir)/examples/drop-in.conf"
	$(Q)printf '%s\n' 'prefix=$(prefix)' 'libdir=$(libdir)' 'includedir=$(includedir)' '' 'Name: libgpupart' \
		'Description: TPC partitions of NVIDIA GPUs' 'Version: $(VERSION)' \
		'Libs: -L$${libdir} -lgpupart' 'Libs.private: $(LIBS)' 'Cflags: -I$${includedir}' \
		> "$(DESTDIR)$(libdir)/pkgconfig/libgpupart.pc"
	$(Q)printf '%s\n' 'prefix=$(prefix)' 'libdir=$(libdir)' 'includedir=$(includedir)' '' 'Name: libsmctrl' \
		'Description: the interface of libsmctrl, by gpupart' 'Version: $(VERSION)' \
		'Requires.private: libgpupart' 'Libs: -L$${libdir} -lsmctrl' 'Cflags: -I$${includedir}' \
		> "$(DESTDIR)$(libdir)/pkgconfig/libsmctrl.pc"

# gpupart.py is one file; it finds the library by the loader, or in $(prefix)/lib.
install-python:
	$(call say,INSTALL,"$(DESTDIR)$(pythondir)/gpupart.py")
	$(Q)test -n '$(pythondir)' || { echo 'install-python: $(PYTHON) is missing: install it or set pythondir=' >&2; exit 1; }
	$(Q)install -d '$(DESTDIR)$(pythondir)'
	$(Q)install -m 644 python/gpupart.py '$(DESTDIR)$(pythondir)/gpupart.py'
	$(Q)$(PYTHON) -c 'import sys; sys.exit("$(pythondir)" in sys.path)' 2>/dev/null && [ -z '$(DESTDIR)' ] && \
		echo 'install-python: $(PYTHON) does not search $(pythondir): export PYTHONPATH=$(pythondir)' >&2 || :

# A wheel of gpupart.py with the command and all libraries except libc: $(B)/wheel/*.whl.
WHEEL	= bin/gpupart=$(CLI) lib/$(SONAME)=$(B)/lib/$(SONAME) lib/$(MANAGE_SONAME)=$(B)/lib/$(MANAGE_SONAME) \
	lib/gpupart/libgpupart-inject.so=$(INJECT) lib/gpupart/libgpupart-nvml.so=$(NVML) \
	lib/gpupart/sim/libcuda.so.1=$(SIM_PLAIN) lib/gpupart/sim/libnvidia-ml.so.1=$(SIM_NVML_PLAIN) \
	$(foreach f,$(CAPTURES),share/gpupart/captures/$(notdir $(f))=$(f)) \
	$(foreach f,$(SCENARIOS),share/gpupart/scenarios/$(notdir $(f))=$(f))
wheel: all
	$(call say,WHEEL,$(B)/wheel)
	$(Q)$(PYTHON) scripts/wheel.py $(B)/wheel python/gpupart.py $(WHEEL)

# Removes the files that install and install-python wrote with the same prefix=, DESTDIR= and so
# on: they install again, into $(B), and each file there is removed. gpupart's own folders are
# removed if they are empty.
uninstall:
	$(call say,UNINSTALL,"$(DESTDIR)$(prefix)")
	$(Q)rm -rf $(B)/uninstall
	$(Q)$(MAKE) -s install DESTDIR='$(abspath $(B))/uninstall'
	$(Q)[ -z '$(pythondir)' ] || $(MAKE) -s install-python DESTDIR='$(abspath $(B))/uninstall'
	$(Q)find $(B)/uninstall ! -type d -printf '%P\n' | while IFS= read -r file; do \
		rm -f "$(DESTDIR)/$$file" || exit; done
	$(Q)find $(B)/uninstall -depth -type d -path '$(B)/uninstall/*/gpupart*' -printf '%P\n' | while IFS= read -r folder; do \
		[ ! -d "$(DESTDIR)/$$folder" ] || rmdir --ignore-fail-on-non-empty "$(DESTDIR)/$$folder" || exit; done
	$(Q)rm -rf $(B)/uninstall

# Debian packages, built in a clean chroot and tested in another; PACKAGES=DIR stores them.
packages:
	@scripts/packages $(if $(PACKAGES),-o '$(PACKAGES)')

# Every message of the programs, libraries and kernel module, with its place, for an editor.
messages:
	@$(PYTHON) scripts/messages.py

# The list in CONTRIBUTING.md.
help:
	@sed -n '/^make /p' CONTRIBUTING.md

clean:
	$(call say,CLEAN,$(B))
	$(Q)rm -rf $(B)

-include $(LIB_OBJ:.o=.d) $(SIM_OBJ:.o=.d) $(SIM_PLAIN_OBJ:.o=.d) $(PIPE_OBJ:.o=.d) $(QOS_OBJ:.o=.d) $(INJECT_OBJ:.o=.d) \
	$(NVML_OBJ:.o=.d) $(SIM_NVML_OBJ:.o=.d) $(SMCTRL_OBJ:.o=.d) \
	$(CLI_OBJ:.o=.d) $(HTTP_OBJ:.o=.d) $(SPANK_OBJ:.o=.d) $(KUBERNETES_OBJ:.o=.d)

.PHONY: all help install install-python uninstall wheel packages clean check check-podman check-slurm check-gpu lint messages bench fuzz
.DELETE_ON_ERROR:
