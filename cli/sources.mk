# SPDX-License-Identifier: MIT
# Sources of the command and of the QoS policy. Files that are in no list are not built, and `make
# lint` names them. One sorted list for each folder.

CLI_COMMANDS_SRC := \
	cli/cmd_bench.c \
	cli/cmd_cdi.c \
	cli/cmd_demo.c \
	cli/cmd_doctor.c \
	cli/cmd_metrics.c \
	cli/cmd_plan.c \
	cli/cmd_ps.c \
	cli/cmd_qos.c \
	cli/cmd_run.c \
	cli/cmd_set.c \
	cli/cmd_sim.c \
	cli/cmd_slurm_conf.c \
	cli/cmd_slurm_node.c \
	cli/cmd_stat.c \
	cli/cmd_top.c \
	cli/cmd_topology.c \
	cli/cmd_trace.c \
	cli/cmd_tune.c \
	cli/cmd_verify.c \
	cli/gpupart.c \
	cli/overview.c

CLI_BENCH_SRC := \
	cli/bench/cell.c \
	cli/bench/criteria.c \
	cli/bench/dynamic.c \
	cli/bench/isolation.c \
	cli/bench/launch.c \
	cli/bench/neighbour.c \
	cli/bench/overhead.c \
	cli/bench/overhead_others.c \
	cli/bench/overlap.c \
	cli/bench/peers.c \
	cli/bench/peers_check.c \
	cli/bench/peers_figures.c \
	cli/bench/peers_report.c \
	cli/bench/protect.c \
	cli/bench/report.c \
	cli/bench/report_svg.c \
	cli/bench/report_text.c \
	cli/bench/scaling.c \
	cli/bench/sets.c \
	cli/bench/slots.c \
	cli/bench/software.c \
	cli/bench/stats.c \
	cli/bench/workload.c

CLI_DRAW_SRC := \
	cli/draw/page.c \
	cli/draw/palette.c \
	cli/draw/picture.c \
	cli/draw/picture_svg.c \
	cli/draw/picture_text.c \
	cli/draw/timeline.c \
	cli/draw/timeline_svg.c \
	cli/draw/topology.c \
	cli/draw/topology_json.c \
	cli/draw/topology_text.c

CLI_METRICS_SRC := \
	cli/metrics/collect.c \
	cli/metrics/text.c \
	cli/metrics/totals.c

# A separate library, with libmicrohttpd.
HTTP_SRC := \
	cli/metrics/http.c

CLI_MPS_SRC := \
	cli/mps/mps.c \
	cli/mps/mps_daemon.c

CLI_PLAN_SRC := \
	cli/plan/demands.c \
	cli/plan/file.c

CLI_QOS_SRC := \
	cli/qos/async_writer.c \
	cli/qos/calibrate.c \
	cli/qos/control.c \
	cli/qos/file.c \
	cli/qos/kernels.c \
	cli/qos/lend.c \
	cli/qos/live.c \
	cli/qos/log.c \
	cli/qos/other_programs.c \
	cli/qos/pace.c \
	cli/qos/replay.c \
	cli/qos/results.c \
	cli/qos/run.c \
	cli/qos/session.c \
	cli/qos/show.c \
	cli/qos/sim.c \
	cli/qos/svg.c \
	cli/qos/tenant_options.c

CLI_SIM_SRC := \
	cli/sim/draw.c \
	cli/sim/expect.c \
	cli/sim/out.c \
	cli/sim/run.c \
	cli/sim/scenario.c \
	cli/sim/scenario_files.c \
	cli/sim/scenario_steps.c

CLI_SLURM_SRC := \
	cli/slurm/node_gpus.c

CLI_START_SRC := \
	cli/start/lend.c \
	cli/start/parent.c \
	cli/start/rules.c \
	cli/start/run.c \
	cli/start/run_parent.c \
	cli/start/run_report.c \
	cli/start/witness.c

CLI_STAT_SRC := \
	cli/stat/verdict.c \
	cli/stat/running.c \
	cli/stat/show.c \
	cli/stat/watch.c

CLI_TARGET_SRC := \
	cli/target/amount.c \
	cli/target/args.c \
	cli/target/audit.c \
	cli/target/state_dir.c \
	cli/target/cgroup.c \
	cli/target/check.c \
	cli/target/clusters.c \
	cli/target/cuda.c \
	cli/target/drained.c \
	cli/target/driver.c \
	cli/target/lending.c \
	cli/target/container_grant.c \
	cli/target/process_table.c \
	cli/target/model.c \
	cli/target/neighbours.c \
	cli/target/nvml.c \
	cli/target/scores.c \
	cli/target/settings.c \
	cli/target/process_list.c \
	cli/target/tenants.c \
	cli/target/usage.c \
	cli/target/which_gpu.c

CLI_TOP_SRC := \
	cli/top/frame.c \
	cli/top/keys.c \
	cli/top/map.c \
	cli/top/screen.c \
	cli/top/top.c

CLI_TRACE_SRC := \
	cli/trace/draw.c \
	cli/trace/gpu.c

CLI_TUNE_SRC := \
	cli/tune/choose.c \
	cli/tune/measure.c \
	cli/tune/show.c

CLI_UTIL_SRC := \
	cli/util/alloc.c \
	cli/util/atomic_file.c \
	cli/util/child.c \
	cli/util/input.c \
	cli/util/message.c \
	cli/util/mounts.c \
	cli/util/namespaces.c \
	cli/util/number.c \
	cli/util/out.c \
	cli/util/out_json.c \
	cli/util/out_text.c \
	cli/util/paths.c \
	cli/util/process.c \
	cli/util/tunables.c \
	cli/util/tunables_value.c \
	cli/util/yaml.c

QOS_SRC := \
	cli/qos/policy/curve.c \
	cli/qos/policy/effort.c \
	cli/qos/policy/guarantee.c \
	cli/qos/policy/held.c \
	cli/qos/policy/lend.c \
	cli/qos/policy/place.c \
	cli/qos/policy/policy.c \
	cli/qos/policy/progress.c \
	cli/qos/policy/shape.c \
	cli/qos/policy/messages.c

# The last files are also in the Slurm plugin.
CLI_PARTS_SRC := $(CLI_BENCH_SRC) $(CLI_DRAW_SRC) $(CLI_METRICS_SRC) $(CLI_MPS_SRC) $(CLI_PLAN_SRC) \
	$(CLI_QOS_SRC) $(CLI_SIM_SRC) $(CLI_SLURM_SRC) $(CLI_START_SRC) $(CLI_STAT_SRC) $(CLI_TARGET_SRC) $(CLI_TOP_SRC) $(CLI_TRACE_SRC) $(CLI_TUNE_SRC) $(CLI_UTIL_SRC) \
	slurm/node_gpu.c slurm/orphans.c
CLI_SRC := $(CLI_COMMANDS_SRC) $(CLI_PARTS_SRC)
