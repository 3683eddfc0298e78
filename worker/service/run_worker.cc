#include "worker/service/run_worker.h"

#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"
#include "proto/base/file_limit.h"
#include "proto/base/log.h"
#include "proto/base/process_state.h"
#include "proto/base/status.h"
#include "proto/trust/certificate_end.h"
#include "storage/disk/roots.h"
#include "storage/engine/make_engine.h"
#include "worker/calibrate/machine_watch.h"
#include "worker/doctor/device_answers.h"
#include "worker/doctor/fitness.h"
#include "worker/doctor/storage.h"
#include "worker/service/daemon.h"
#include "worker/service/describe.h"
#include "worker/service/open_device.h"
#include "worker/service/own_address.h"
#include "worker/service/signal_watch.h"

namespace troupe {
namespace {

// What of this machine the clients of its scheduler reach through it.
void LogReach(const WorkerOptions& options, const Roots& roots) {
  if (options.roots.empty()) {
    LogWarning(
        "no --root: the jobs of every client read and write whatever this "
        "worker's user may; --root NAME=DIR keeps them below DIR");
    return;
  }
  LogInfo(absl::StrCat("jobs read and write below the roots ", roots.Names(),
                       " only"));
}

absl::Status Serve(const WorkerOptions& flags, SignalWatch& signals) {
  ASSIGN_OR_RETURN(WorkerOptions options, ResolveOptions(flags));
  // Before seconds are spent on the device.
  RETURN_IF_ERROR(CheckOwnAddress(options.address));
  RETURN_IF_ERROR(
      CheckReachableFromOtherHosts(options.address, options.scheduler));
  RETURN_IF_ERROR(CheckTrust(options.trust, PeerRole::kWorker,
                             options.scheduler, absl::Now()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Roots> roots,
                   Roots::Install(options.roots));
  LogReach(options, *roots);
  if (options.trust.insecure > 0) {
    LogWarning(
        "INSECURE: this worker does what any program that answers at its "
        "scheduler's address says (--insecure)");
  }
  const CertificateWatch certificate(options.trust, PeerRole::kWorker);
  const RealClock clock;
  ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(options));
  Device& device = *opened.device;
  LogInfo(absl::StrFormat("%s, %.1f GiB of device memory", device.Describe(),
                          options.device_memory * 0x1p-30));
  ASSIGN_OR_RETURN(
      const WorkerDescription description,
      DescribeWorker({.worker = options, .gpu = opened.gpu}, device, clock));
  const TierArenas arenas(
      {description.budgets().begin(), description.budgets().end()},
      {.device = *opened.device_memory,
       .host = *opened.host_memory,
       .nvme = {.directory = options.nvme, .cluster = options.scheduler}});
  ASSIGN_OR_RETURN(const std::unique_ptr<IoEngine> io, MakeIoEngine());
  // Less than the look as a whole has, so that the reason names the device.
  constexpr absl::Duration kDeviceAnswersIn = absl::Seconds(2);
  const DeviceAsker ask_device(device, kDeviceAnswersIn);
  Fitness fitness({.nvme_dir = options.nvme,
                   .roots = roots->NameList(),
                   .written_roots = WritableRoots(roots->NameList()),
                   .shares_memory = !description.memory_domain().empty(),
                   .device = ask_device});
  MachineWatch watch(SensorsOf(clock, opened.gpu.has_value()));
  WorkerDaemon daemon(
      {.scheduler = options.scheduler,
       .trust = options.trust,
       .description = description,
       .address = options.address,
       .machine = [&watch] { return watch.Read(); },
       .unfit = [&fitness] { return fitness.Look(); },
       .start_afresh = [&ask_device] { return ask_device.StartAfresh(); }},
      {.device = device,
       .arenas = arenas,
       .io = *io,
       .clock = clock,
       .between_steps = [&watch] { watch.Probe(); },
       .host_threads = options.threads});
  signals.OnSignal([&daemon](const std::string& name) {
    LogInfo(absl::StrCat("stopping: ", name));
    daemon.Stop(name);
  });
  const absl::Status status = daemon.Run();
  signals.OnSignal(nullptr);
  return status;
}

// Long enough for the kernel's ticks to say something.
MachineReading LookAtMachine(const Clock& clock, bool gpu) {
  constexpr absl::Duration kLook = absl::Milliseconds(500);
  MachineWatch watch(SensorsOf(clock, gpu));
  absl::SleepFor(kLook);
  return watch.Read();
}

absl::Status CalibrateAndPrint(const RunCalibrateOptions& options) {
  ASSIGN_OR_RETURN(WorkerOptions worker, ResolveOptions(options.worker));
  const RealClock clock;
  ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(worker));
  ASSIGN_OR_RETURN(WorkerDescription description,
                   DescribeWorker({.worker = worker,
                                   .gpu = opened.gpu,
                                   .measure_anew = !options.describe},
                                  *opened.device, clock));
  if (options.describe) {
    *description.mutable_machine() =
        LookAtMachine(clock, opened.gpu.has_value());
    if (!description.SerializeToOstream(&std::cout)) {
      return absl::UnavailableError("cannot write to stdout");
    }
    return absl::OkStatus();
  }
  std::cout << CalibrationText(description.calibration());
  return absl::OkStatus();
}

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  LogError(status.message());
  return 1;
}

}  // namespace

int RunWorker(const WorkerOptions& options) {
  // First, for no thread that is there before it may get its SIGHUP.
  const absl::Status log =
      StartLog({.name = options.name, .file = options.log_file});
  if (!log.ok()) return ExitCode(log);
  SignalWatch signals;
  if (options.parent != 0 && !EndWithParent(options.parent)) {
    LogInfo(absl::StrCat("stopping: process ", options.parent,
                         ", which started this one, is gone"));
    return 0;
  }
  RaiseFileLimit();  // a peer of a Gloo group is a connection; gloo/mesh.h
  return ExitCode(Serve(options, signals));
}

int RunCalibrate(const RunCalibrateOptions& options) {
  // Stdout is for the answer.
  const absl::Status log = StartLog({.name = "troupe-worker"});
  if (!log.ok()) return ExitCode(log);
  return ExitCode(CalibrateAndPrint(options));
}

}  // namespace troupe
