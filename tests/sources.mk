# SPDX-License-Identifier: MIT
# Tests: programs by the libraries they are linked with, scripts, benchmarks, fuzz targets.
# Sorted. Files that are in no list are not run, and `make lint` names them.

UNIT_SRC := \
	tests/unit/cli/args.c \
	tests/unit/cli/async_writer.c \
	tests/unit/cli/bench.c \
	tests/unit/cli/cgroup.c \
	tests/unit/cli/child.c \
	tests/unit/cli/doctor.c \
	tests/unit/cli/mps.c \
	tests/unit/cli/neighbours.c \
	tests/unit/cli/pack.c \
	tests/unit/cli/qos.c \
	tests/unit/cli/qos_drained.c \
	tests/unit/cli/qos_kernels.c \
	tests/unit/cli/qos_lend.c \
	tests/unit/cli/qos_pace.c \
	tests/unit/cli/qos_shape.c \
	tests/unit/cli/run_parent.c \
	tests/unit/cli/tune.c \
	tests/unit/cli/usage.c \
	tests/unit/cli/witness.c \
	tests/unit/confine/attach.c \
	tests/unit/confine/graph_builds.c \
	tests/unit/confine/graph_rebuild.c \
	tests/unit/confine/kernel_name.c \
	tests/unit/confine/module.c \
	tests/unit/confine/probe.c \
	tests/unit/confine/scope.c \
	tests/unit/core/fsize.c \
	tests/unit/core/hash.c \
	tests/unit/core/memfd.c \
	tests/unit/core/peek.c \
	tests/unit/core/shared_header.c \
	tests/unit/driver/callback.c \
	tests/unit/driver/cuda.c \
	tests/unit/driver/device.c \
	tests/unit/fail.c \
	tests/unit/ledger/kill.c \
	tests/unit/ledger/ledger.c \
	tests/unit/ledger/order.c \
	tests/unit/memory/begin_end.c \
	tests/unit/memory/nvml_usage.c \
	tests/unit/memory/tenant.c \
	tests/unit/memory/watched_functions.c \
	tests/unit/plan/exact.c \
	tests/unit/plan/known.c \
	tests/unit/plan/shape.c \
	tests/unit/records/clocks.c \
	tests/unit/records/drain.c \
	tests/unit/records/fold.c \
	tests/unit/records/graph.c \
	tests/unit/records/read.c \
	tests/unit/records/ring.c \
	tests/unit/records/watch.c \
	tests/unit/slurm/allocate.c \
	tests/unit/slurm/environment.c \
	tests/unit/slurm/orphans.c \
	tests/unit/stat/watched_functions.c \
	tests/unit/state/budget.c \
	tests/unit/state/grant.c \
	tests/unit/state/limit.c \
	tests/unit/state/state_page.c \
	tests/unit/state/publish.c \
	tests/unit/state/ring.c \
	tests/unit/tmd/layouts.c \
	tests/unit/tmd/release.c \
	tests/unit/tmd/tmd.c \
	tests/unit/topo/capture.c \
	tests/unit/topo/cluster.c \
	tests/unit/topo/engine_use.c \
	tests/unit/topo/source_netlink.c \
	tests/unit/topo/source_rm.c \
	tests/unit/topo/topology.c \
	tests/unit/topo/tpcset.c

LIBT_SRC := \
	tests/lib/confine/contexts.c \
	tests/lib/confine/detach.c \
	tests/lib/confine/device_launches.c \
	tests/lib/confine/graph_variants.c \
	tests/lib/confine/graphs.c \
	tests/lib/confine/green.c \
	tests/lib/confine/launch.c \
	tests/lib/confine/learn.c \
	tests/lib/confine/lend.c \
	tests/lib/confine/life.c \
	tests/lib/confine/rules.c \
	tests/lib/confine/sm_count.c \
	tests/lib/confine/stress.c \
	tests/lib/confine/trust.c \
	tests/lib/driver/tools.c \
	tests/lib/driver/unload.c \
	tests/lib/driver/unreported.c \
	tests/lib/memory/memory.c \
	tests/lib/records/graphs.c \
	tests/lib/records/records.c \
	tests/lib/smctrl/smctrl.c \
	tests/lib/state/live.c \
	tests/lib/verify/verify.c

SIMT_SRC := \
	tests/sim/cuda/api.c \
	tests/sim/cuda/graph.c \
	tests/sim/cuda/launch.c \
	tests/sim/cuda/objects.c \
	tests/sim/cuda/release.c

PIPET_SRC := \
	tests/sim/pipe/driver.c \
	tests/sim/pipe/external_feed.c \
	tests/sim/pipe/memory.c \
	tests/sim/pipe/properties.c \
	tests/sim/pipe/silicon.c

TEST_SH := \
	tests/cli/abi.sh \
	tests/cli/bad-input.sh \
	tests/cli/bench.sh \
	tests/cli/cdi.sh \
	tests/cli/cdi_unit.sh \
	tests/cli/clusters.sh \
	tests/cli/completion.sh \
	tests/cli/container.sh \
	tests/cli/device-launches.sh \
	tests/cli/documents.sh \
	tests/cli/drained.sh \
	tests/cli/drivers.sh \
	tests/cli/engines.sh \
	tests/cli/fail.sh \
	tests/cli/first_use.sh \
	tests/cli/gpus.sh \
	tests/cli/grants.sh \
	tests/cli/hermetic.sh \
	tests/cli/installed.sh \
	tests/cli/json.sh \
	tests/cli/kubernetes.sh \
	tests/cli/lend.sh \
	tests/cli/live.sh \
	tests/cli/manpages.sh \
	tests/cli/mem.sh \
	tests/cli/metrics.sh \
	tests/cli/metrics_bad.sh \
	tests/cli/mps.sh \
	tests/cli/output.sh \
	tests/cli/pages.sh \
	tests/cli/parent.sh \
	tests/cli/peers.sh \
	tests/cli/pictures.sh \
	tests/cli/plan.sh \
	tests/cli/podman.sh \
	tests/cli/proof.sh \
	tests/cli/qos.sh \
	tests/cli/qos_kernels.sh \
	tests/cli/qos_others.sh \
	tests/cli/qos_trouble.sh \
	tests/cli/rules.sh \
	tests/cli/run.sh \
	tests/cli/sim-bad.sh \
	tests/cli/sim-own.sh \
	tests/cli/sim.sh \
	tests/cli/slurm.sh \
	tests/cli/sm-count.sh \
	tests/cli/stat.sh \
	tests/cli/stat_p.sh \
	tests/cli/strict.sh \
	tests/cli/tls.sh \
	tests/cli/top.sh \
	tests/cli/topology.sh \
	tests/cli/trace.sh \
	tests/cli/tune.sh \
	tests/cli/tutorial.sh \
	tests/cli/upgrade.sh \
	tests/cli/defaults.sh \
	tests/kubernetes/operations.sh \
	tests/kubernetes/protocol.sh \
	tests/lib/confine/inside.sh \
	tests/lib/memory/gpus.sh \
	tests/lib/nvml/nvml.sh \
	tests/lib/smctrl/header.sh \
	tests/python/python.sh \
	tests/python/wheel.sh

SLURM_SH := \
	tests/slurm/jobs.sh \
	tests/slurm/mps.sh \
	tests/slurm/stream.sh \
	tests/slurm/strict.sh

KUBERNETES_SH := \
	tests/kubernetes/cluster.sh \
	tests/kubernetes/operations.sh \
	tests/kubernetes/protocol.sh

BENCH_SRC := \
	tests/bench/audit.c \
	tests/bench/callback.c \
	tests/bench/launch_ratio.c \
	tests/bench/ledger.c \
	tests/bench/memory_cost.c \
	tests/bench/pipe.c \
	tests/bench/plan.c \
	tests/bench/set_cost.c

FUZZ_TARGETS := \
	tests/fuzz/fuzz_boards.c \
	tests/fuzz/fuzz_capture.c \
	tests/fuzz/fuzz_control.c \
	tests/fuzz/fuzz_demands.c \
	tests/fuzz/fuzz_environ.c \
	tests/fuzz/fuzz_grant.c \
	tests/fuzz/fuzz_grpc.c \
	tests/fuzz/fuzz_job.c \
	tests/fuzz/fuzz_ledger.c \
	tests/fuzz/fuzz_mask.c \
	tests/fuzz/fuzz_netlink.c \
	tests/fuzz/fuzz_nvml.c \
	tests/fuzz/fuzz_plan.c \
	tests/fuzz/fuzz_planfile.c \
	tests/fuzz/fuzz_proc.c \
	tests/fuzz/fuzz_progress.c \
	tests/fuzz/fuzz_qos.c \
	tests/fuzz/fuzz_qoslog.c \
	tests/fuzz/fuzz_registers.c \
	tests/fuzz/fuzz_rm.c \
	tests/fuzz/fuzz_scenario.c \
	tests/fuzz/fuzz_slurm.c \
	tests/fuzz/fuzz_stat.c \
	tests/fuzz/fuzz_tmd.c \
	tests/fuzz/fuzz_tpcset.c \
	tests/fuzz/fuzz_words.c
