# SPDX-License-Identifier: MIT
# Sources of the library and of the other shared objects. Files that are in no list are not built,
# and `make lint` names them. One sorted list for each folder.

LIB_CORE_SRC := \
	lib/core/config.c \
	lib/core/ctx.c \
	lib/core/environment.c \
	lib/core/fork.c \
	lib/core/memfd.c \
	lib/core/peek.c \
	lib/core/rows.c \
	lib/core/shared_header.c \
	lib/core/state_dir.c \
	lib/core/symbols.c

LIB_CORE_MANAGE_SRC := \
	lib/core/fault.c \
	lib/core/memfd_make.c

LIB_TOPO_SRC := \
	lib/topo/rm_client.c \
	lib/topo/set_format.c \
	lib/topo/set_parse.c \
	lib/topo/source_rm.c \
	lib/topo/topology.c

LIB_TOPO_MANAGE_SRC := \
	kmod/chip.c \
	kmod/engines.c \
	kmod/order.c \
	kmod/read.c \
	kmod/runlists.c \
	kmod/topo.c \
	lib/topo/capture.c \
	lib/topo/capture_read.c \
	lib/topo/cluster.c \
	lib/topo/engine_use.c \
	lib/topo/open.c \
	lib/topo/sample.c \
	lib/topo/source_netlink.c

LIB_TMD_SRC := \
	lib/tmd/fit.c \
	lib/tmd/layouts.c \
	lib/tmd/part.c \
	lib/tmd/release.c \
	lib/tmd/shape.c \
	lib/tmd/tmd.c

LIB_PLAN_SRC := \
	lib/plan/arithmetic.c \
	lib/plan/explain.c \
	lib/plan/pack.c \
	lib/plan/place.c \
	lib/plan/plan.c \
	lib/plan/search.c \
	lib/plan/shape.c

LIB_DRIVER_SRC := \
	lib/driver/callback.c \
	lib/driver/cuda.c \
	lib/driver/device.c \
	lib/driver/table.c \
	lib/driver/tools.c

LIB_STATE_SRC := \
	lib/state/grant.c \
	lib/state/holder.c \
	lib/state/job.c \
	lib/state/limit.c \
	lib/state/process.c \
	lib/state/state_page.c \
	lib/state/progress.c

LIB_STATE_MANAGE_SRC := \
	lib/state/grant_write.c \
	lib/state/job_set.c \
	lib/state/process_gpus.c \
	lib/state/process_signal.c \
	lib/state/remote.c

LIB_CONFINE_SRC := \
	lib/confine/attach.c \
	lib/confine/check_cache.c \
	lib/confine/gpu.c \
	lib/confine/graph.c \
	lib/confine/graph_builds.c \
	lib/confine/graph_nodes.c \
	lib/confine/graph_rebuild.c \
	lib/confine/kernel_name.c \
	lib/confine/launch.c \
	lib/confine/lend.c \
	lib/confine/module.c \
	lib/confine/probe.c \
	lib/confine/recording.c \
	lib/confine/report.c \
	lib/confine/rules.c \
	lib/confine/scope.c \
	lib/confine/self_check.c \
	lib/confine/sm_count.c \
	lib/confine/stream.c \
	lib/confine/watched_functions.c

LIB_CONFINE_MANAGE_SRC := \
	lib/confine/lend_run.c \
	lib/confine/recording_stream.c \
	lib/confine/report_run.c

LIB_RECORDS_SRC := \
	lib/records/check.c \
	lib/records/context.c \
	lib/records/file.c \
	lib/records/fold.c \
	lib/records/graph.c \
	lib/records/names.c \
	lib/records/ring.c \
	lib/records/stream.c \
	lib/records/totals.c

LIB_RECORDS_MANAGE_SRC := \
	lib/records/clocks.c \
	lib/records/drain.c \
	lib/records/read.c \
	lib/records/watch.c

LIB_STAT_SRC := \
	lib/stat/stat.c \
	lib/stat/watched_functions.c

LIB_STAT_MANAGE_SRC := \
	lib/stat/shared_memory_run.c

LIB_LEDGER_SRC := \
	lib/ledger/file.c \
	lib/ledger/ledger.c \
	lib/ledger/query.c

LIB_MEMORY_SRC := \
	lib/memory/account.c \
	lib/memory/allocations.c \
	lib/memory/call_state.c \
	lib/memory/intercept.c \
	lib/memory/device.c \
	lib/memory/nvml_usage.c \
	lib/memory/overhead.c \
	lib/memory/tenant.c \
	lib/memory/watched_functions.c

LIB_MEMORY_MANAGE_SRC := \
	lib/memory/size_parse.c

LIB_VERIFY_SRC := \
	lib/verify/census.c \
	lib/verify/learn.c \
	lib/verify/rows_concurrent.c \
	lib/verify/rows_parts.c \
	lib/verify/rows_scopes.c \
	lib/verify/rows_vgpcs.c \
	lib/verify/verify.c

INJECT_SRC := \
	lib/inject/inject.c

NVML_SRC := \
	lib/nvml/answer.c \
	lib/nvml/answer_ioctl.c \
	lib/nvml/answer_list.c \
	lib/nvml/audit.c \
	lib/nvml/copy.c \
	lib/nvml/namespace.c \
	lib/nvml/share.c

SMCTRL_SRC := \
	lib/smctrl/driver.c \
	lib/smctrl/inject.c \
	lib/smctrl/smctrl.c \
	lib/smctrl/topology.c

# libgpupart.so.0, which all confined programs load, needs only libc.
LIB_PROGRAM_SRC := $(LIB_CORE_SRC) $(LIB_TOPO_SRC) $(LIB_TMD_SRC) $(LIB_DRIVER_SRC) $(LIB_STATE_SRC) \
	$(LIB_CONFINE_SRC) $(LIB_RECORDS_SRC) $(LIB_STAT_SRC) $(LIB_LEDGER_SRC) $(LIB_MEMORY_SRC)

# libgpupart-manage.so.0 is for programs that manage GPUs. Confined processes do not need it.
LIB_MANAGE_SRC := $(LIB_CORE_MANAGE_SRC) $(LIB_TOPO_MANAGE_SRC) $(LIB_CONFINE_MANAGE_SRC) $(LIB_MEMORY_MANAGE_SRC) \
	$(LIB_RECORDS_MANAGE_SRC) $(LIB_STATE_MANAGE_SRC) $(LIB_STAT_MANAGE_SRC) $(LIB_PLAN_SRC) $(LIB_VERIFY_SRC)

LIB_SRC := $(LIB_PROGRAM_SRC) $(LIB_MANAGE_SRC)

# Files of libgpupart.so.0 that run at a launch or an allocation are built for speed. The other
# files are built for size.
LIB_FAST_SRC := \
	lib/confine/launch.c \
	lib/driver/callback.c \
	lib/driver/device.c \
	lib/records/fold.c \
	lib/records/ring.c \
	lib/tmd/tmd.c
