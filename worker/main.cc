// troupe-worker: fills one rank of a job at a time, for a scheduler.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "worker/doctor/run_doctor.h"
#include "worker/service/options.h"
#include "worker/service/run_worker.h"

namespace {

// A flag whose value is an amount of memory: "8GiB".
void AddBytes(CLI::App& app, const std::string& name, int64_t& bytes,
              const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&bytes, name](const std::string& text) {
           const absl::StatusOr<int64_t> parsed = troupe::ParseBytes(text);
           if (!parsed.ok()) {
             throw CLI::ValidationError(name,
                                        std::string(parsed.status().message()));
           }
           bytes = *parsed;
         },
         help)
      ->type_name("BYTES");
}

void AddDeviceFlags(CLI::App& app, troupe::WorkerOptions& options) {
  app.add_option("--threads", options.threads,
                 "threads of an operation; default: one for each core");
  app.add_option("--device", options.device,
                 "cpu, or cuda:N for a GPU; default: cpu");
  AddBytes(app, "--device-memory", options.device_memory,
           "budget of the device tier; default: 80 % of the available RAM, or "
           "90 % of what is free on the GPU");
  AddBytes(app, "--host-memory", options.host_memory,
           "budget of the host tier; default: the rest, or half of the RAM");
  app.add_option("--nvme", options.nvme,
                 "directory of the nvme tier, on a disk; it is tried first")
      ->type_name("DIR");
  AddBytes(app, "--nvme-size", options.nvme_size,
           "budget of the nvme tier, which --nvme needs");
  app.add_option("--calibration", options.calibration_file,
                 "file that keeps this machine's rates; default: "
                 "~/.cache/troupe/calibration-THREADS.textproto, or -GPU");
}

}  // namespace

int main(int argc, char** argv) {
  troupe::RunCalibrateOptions calibrate;
  troupe::DoctorOptions doctor;
  troupe::WorkerOptions options;
  CLI::App app("Fills a rank of a job at a time, for a scheduler.",
               "troupe-worker");
  app.add_option("--scheduler", options.scheduler, "where it serves workers")
      ->type_name("HOST:PORT");
  app.add_option("--name", options.name, "unique in the cluster");
  app.add_option("--address", options.address, "where peers reach this worker");
  app.add_option("--log", options.log_file, "also append the log to this file");
  app.add_option("--exit-with-parent", options.parent,
                 "stop when the process that started this one ends: its id")
      ->type_name("PID");
  AddDeviceFlags(app, options);
  CLI::App* command = app.add_subcommand(
      "calibrate", "measures this machine and writes the calibration file");
  AddDeviceFlags(*command, calibrate.worker);
  command->add_option("--name", calibrate.worker.name, "in the description");
  command->add_flag("--describe", calibrate.describe,
                    "write a serialised WorkerDescription to stdout; measure "
                    "only where no calibration is kept");
  CLI::App* doctor_command =
      app.add_subcommand("doctor", "says what of Troupe works on this machine");
  doctor_command->add_flag("--json", doctor.json, "print JSON");
  doctor_command->add_option("--port", doctor.subject.port, "to listen on");
  doctor_command->add_option("--state", doctor.subject.state_dir, "its folder");
  doctor_command->add_option("--nvme", doctor.subject.nvme_dir,
                             "directory of an nvme tier");
  CLI11_PARSE(app, argc, argv);
  if (doctor_command->parsed()) return troupe::RunDoctor(doctor);
  if (command->parsed()) return troupe::RunCalibrate(calibrate);
  if (options.scheduler.empty()) {
    return app.exit(CLI::RequiredError("--scheduler"));
  }
  return troupe::RunWorker(options);
}
