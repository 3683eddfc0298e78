#include "worker/service/describe.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/cores.h"
#include "proto/base/log.h"
#include "proto/base/process_state.h"
#include "proto/base/status.h"
#include "proto/plan/precision.h"
#include "storage/engine/make_engine.h"
#include "storage/spill/spill_preflight.h"
#include "worker/calibrate/calibrate.h"
#include "worker/calibrate/calibrate_gpu.h"
#include "worker/calibrate/calibration_file.h"
#include "worker/collective/shared_memory/memory_domain.h"
#include "worker/rank/resident_memory.h"
#include "worker/service/datasheets.h"

namespace troupe {
namespace {

void AddBudget(WorkerDescription& worker, Tier tier, int64_t bytes) {
  TierBudget& budget = *worker.add_budgets();
  budget.set_tier(tier);
  budget.set_bytes(bytes);
}

// A GPU computes alike whatever the host's threads are.
CalibrationFileOptions CalibrationFileFor(
    const DescribeWorkerOptions& options) {
  const WorkerOptions& flags = options.worker;
  const bool gpu = options.gpu.has_value();
  CalibrationFileOptions file = {
      .path = flags.calibration_file,
      .threads = gpu ? 1 : flags.threads,
      .device = gpu ? GpuCalibrationDevice(*options.gpu) : CalibrationDevice(),
      .measure_anew = options.measure_anew};
  if (file.path.empty()) {
    file.path = gpu ? GpuCalibrationFile(options.gpu->name())
                    : DefaultCalibrationFile(flags.threads);
  }
  return file;
}

// What they reach, and their first runs, as a rank would run them.
absl::StatusOr<Calibration> RunKernels(const DescribeWorkerOptions& options,
                                       Device& device, const Clock& clock) {
  const KeptFreeMemory kept;
  const CalibrationFileOptions file = CalibrationFileFor(options);
  ASSIGN_OR_RETURN(Calibration calibration, LoadOrMeasure(file, [&] {
                     LogInfo(absl::StrCat(
                         "measuring this machine, once; kept in ", file.path));
                     return options.gpu.has_value()
                                ? CalibrateGpu(device, clock, {})
                                : Calibrate(device, clock, {});
                   }));
  if (!options.gpu.has_value()) RETURN_IF_ERROR(WarmUp(device, clock));
  // What was measured with is given back.
  RETURN_IF_ERROR(device.StartAfresh());
  return calibration;
}

// All zero: there is no such tier.
absl::StatusOr<SpillRates> NvmeRates(const WorkerOptions& flags,
                                     const Clock& clock) {
  if (flags.nvme.empty()) return SpillRates{};
  ASSIGN_OR_RETURN(const std::unique_ptr<IoEngine> io,
                   MakeIoEngine({.log = false}));
  const absl::StatusOr<SpillRates> rates =
      TrySpillDirectory(*io, clock,
                        {.directory = flags.nvme,
                         .bytes = static_cast<uint64_t>(flags.nvme_size)});
  if (!rates.ok()) return Annotate(rates.status(), "--nvme");
  LogInfo(absl::StrCat("nvme tier in ", flags.nvme, ": ", io->name(), " ",
                       SpillRatesText(*rates)));
  return rates;
}

}  // namespace

absl::StatusOr<WorkerDescription> DescribeWorker(
    const DescribeWorkerOptions& options, Device& device, const Clock& clock) {
  const WorkerOptions& flags = options.worker;
  // First, as it is soonest known to be wrong.
  ASSIGN_OR_RETURN(const SpillRates nvme, NvmeRates(flags, clock));
  WorkerDescription worker;
  worker.set_name(flags.name);
  worker.set_host(HostName());
  worker.set_memory_domain(MemoryDomain());
  worker.set_device(flags.device);
  // A GPU keeps about one busy: that of the lane which enqueues.
  worker.set_threads(options.gpu.has_value() ? 1 : flags.threads);
  worker.set_host_cores(HostCoreCount());
  AddBudget(worker, DEVICE, flags.device_memory);
  AddBudget(worker, HOST, flags.host_memory);
  if (options.gpu.has_value()) {
    *worker.mutable_gpu() = *options.gpu;
    for (DatasheetRate& rate : DatasheetOf(options.gpu->name())) {
      *worker.add_datasheet() = std::move(rate);
    }
  }
  ASSIGN_OR_RETURN(*worker.mutable_calibration(),
                   RunKernels(options, device, clock));
  if (!flags.nvme.empty()) {
    AddBudget(worker, NVME, flags.nvme_size);
    Calibration& calibration = *worker.mutable_calibration();
    calibration.set_nvme_read_bytes_per_second(nvme.read_bytes_per_second);
    calibration.set_nvme_write_bytes_per_second(nvme.write_bytes_per_second);
    calibration.set_nvme_read_latency_us(nvme.read_latency_us);
    calibration.set_nvme_write_latency_us(nvme.write_latency_us);
  }
  ReleaseFreeMemory();
  worker.set_process_bytes(ResidentMemoryBytes());
  return worker;
}

std::string CalibrationText(const Calibration& calibration) {
  std::string text = absl::StrCat(calibration.device(), ", ",
                                  calibration.threads(), " threads\n");
  const auto line = [&](const std::string& what, double rate,
                        absl::string_view unit) {
    absl::StrAppendFormat(&text, "  %-44s %9.2f %s\n", what, rate, unit);
  };
  for (const MatmulRate& rate : calibration.matmul()) {
    line(absl::StrFormat("%s %s [%d, %d] x [%d, %d]",
                         PrecisionName(rate.dtype()),
                         rate.form() == PLAIN        ? "product"
                         : rate.form() == TRANSPOSED ? "x W^T"
                                                     : "x^T y",
                         rate.m(), rate.k(), rate.k(), rate.n()),
         rate.flops_per_second() * 1e-9, "GFLOP/s");
  }
  for (const AttentionRate& rate : calibration.attention()) {
    const std::string shape = absl::StrFormat(
        "%s attention, %d rows, heads of %d", PrecisionName(rate.dtype()),
        rate.length(), rate.head_dim());
    line(shape, rate.forward_flops_per_second() * 1e-9, "GFLOP/s");
    line(shape + ", back", rate.backward_flops_per_second() * 1e-9, "GFLOP/s");
  }
  line("memory, f32", calibration.memory_bytes_per_second() * 1e-9, "GB/s");
  line("memory, bf16", calibration.memory_bf16_bytes_per_second() * 1e-9,
       "GB/s");
  line("optimizer", calibration.optimizer_bytes_per_second() * 1e-9, "GB/s");
  line("gelu, f32", calibration.elementwise_ops_per_second() * 1e-9, "G/s");
  line("gelu, bf16", calibration.elementwise_bf16_ops_per_second() * 1e-9,
       "G/s");
  line("the probe", calibration.probe_us(), "us");
  line("an instruction", calibration.instruction_overhead_us(), "us");
  line("loopback latency", calibration.loopback().latency_us(), "us");
  line("loopback", calibration.loopback().bytes_per_second() * 1e-9, "GB/s");
  if (calibration.has_shared_memory()) {
    const LinkRate& memory = calibration.shared_memory();
    line("shared memory latency", memory.latency_us(), "us");
    line("shared memory", memory.bytes_per_second() * 1e-9, "GB/s");
  }
  if (calibration.nvme_read_bytes_per_second() > 0) {
    line("nvme tier, reads", calibration.nvme_read_bytes_per_second() * 1e-9,
         "GB/s");
    line("nvme tier, writes", calibration.nvme_write_bytes_per_second() * 1e-9,
         "GB/s");
    line("nvme tier, a small read", calibration.nvme_read_latency_us(), "us");
    line("nvme tier, a small write", calibration.nvme_write_latency_us(), "us");
  }
  return text;
}

}  // namespace troupe
