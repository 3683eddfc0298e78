#include "worker/service/open_device.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ops/cpu/device.h"
#include "ops/cuda/device.h"
#include "ops/cuda/facts.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "worker/calibrate/choices_file.h"
#include "worker/collective/nccl/nccl_communicator.h"
#include "worker/rank/device_allocator.h"

namespace troupe {
namespace {

// The rest is for NCCL, kernels' code and the fragments between; their scratch
// is part of a plan (scheduler/simulate/gpu_scratch.h).
constexpr int kFreePercent = 90;

absl::Status WrongFlag(const WorkerOptions& options,
                       const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--device: ", options.device, ": ", status.message(), "; or use cpu"));
}

Gpu Describe(const GpuFacts& facts, bool cudnn) {
  Gpu gpu;
  gpu.set_name(facts.name);
  gpu.set_uuid(facts.uuid);
  gpu.set_memory_bytes(facts.memory_bytes);
  gpu.set_head_dim_max_f32(facts.head_dim_max_f32);
  gpu.set_head_dim_max_narrow(facts.head_dim_max_narrow);
  gpu.set_driver_version(facts.driver_version);
  gpu.set_nccl_version(NcclVersion());
  if (const char* host = std::getenv("NCCL_HOSTID")) gpu.set_nccl_host(host);
  if (cudnn) gpu.set_cudnn_version(facts.cudnn_version);
  gpu.set_link(facts.link);
  return gpu;
}

absl::Status Budget(const GpuFacts& facts, WorkerOptions& options) {
  if (options.device_memory == 0) {
    options.device_memory = facts.free_bytes / 100 * kFreePercent;
  }
  if (options.device_memory <= facts.free_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "--device-memory: %.1f GiB, but of %s's %.1f GiB only %.1f GiB are free",
      options.device_memory * 0x1p-30, facts.name, facts.memory_bytes * 0x1p-30,
      facts.free_bytes * 0x1p-30));
}

// Also of a worker on a GPU, whose host updates parameters that rest there.
void TakeGrantedThreads(WorkerOptions& options) {
  const CpuThreads threads = GrantedCpuThreads(options.threads);
  if (threads.granted >= options.threads) return;
  LogWarning(absl::StrCat(
      "--threads: ", options.threads, ", but OpenMP grants ", threads.granted,
      threads.held_by.empty() ? "" : absl::StrCat(" (", threads.held_by, ")"),
      ": this worker computes with ", threads.granted));
  options.threads = threads.granted;
}

absl::StatusOr<OpenedDevice> OpenGpu(int ordinal, WorkerOptions& options) {
  auto choices =
      std::make_unique<ChoicesFile>(ChoicesPath(options.calibration_file));
  absl::StatusOr<std::unique_ptr<Device>> device = NewCudaDevice(
      {.ordinal = ordinal, .cudnn = options.cudnn, .choices = choices.get()});
  if (!device.ok()) return WrongFlag(options, device.status());
  const absl::StatusOr<GpuFacts> facts = ReadGpuFacts(ordinal);
  if (!facts.ok()) return WrongFlag(options, facts.status());
  RETURN_IF_ERROR(Budget(*facts, options));
  OpenedDevice opened = {.choices = std::move(choices),
                         .device = *std::move(device),
                         .gpu = Describe(*facts, options.cudnn)};
  opened.device_memory = std::make_unique<DeviceAllocator>(*opened.device);
  opened.host_memory = std::make_unique<PinnedAllocator>(*opened.device);
  return opened;
}

}  // namespace

absl::StatusOr<OpenedDevice> OpenDevice(WorkerOptions& options) {
  ASSIGN_OR_RETURN(const absl::optional<int> gpu, GpuOrdinal(options.device));
  if (!gpu.has_value()) RETURN_IF_ERROR(CheckCpuInstructionSetLimit());
  TakeGrantedThreads(options);
  if (gpu.has_value()) return OpenGpu(*gpu, options);
  OpenedDevice opened;
  opened.device = NewCpuDevice({.threads = options.threads});
  opened.device_memory = std::make_unique<HostAllocator>();
  opened.host_memory = std::make_unique<HostAllocator>();
  return opened;
}

}  // namespace troupe
