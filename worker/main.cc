// troupe-worker: fills one rank of a job at a time, for a scheduler.
#include <CLI/CLI.hpp>

#include "worker/doctor/run_doctor.h"
#include "worker/service/device_flags.h"
#include "worker/service/options.h"
#include "worker/service/run_worker.h"

int main(int argc, char** argv) {
  troupe::RunCalibrateOptions calibrate;
  troupe::DoctorOptions doctor;
  troupe::WorkerOptions options;
  CLI::App app("Fills a rank of a job at a time, for a scheduler.",
               "troupe-worker");
  app.add_option("--scheduler", options.scheduler, "where it serves workers")
      ->type_name("HOST:PORT");
  app.add_option("--certificates", options.trust.certificates,
                 "directory of its certificate (troupe cluster certificate)")
      ->type_name("DIR");
  app.add_flag("--insecure", options.trust.insecure,
               "no certificates, no TLS; on loopback only, unless given twice");
  app.add_option("--name", options.name, "unique in the cluster");
  app.add_option("--address", options.address, "where peers reach this worker");
  app.add_option("--root", options.roots,
                 "jobs read and write below DIR, as NAME:path, and nowhere "
                 "else; may be given several times")
      ->type_name("NAME=DIR")
      ->allow_extra_args(false);
  app.add_option("--log", options.log_file,
                 "also append the log to this file; it is rotated at 64 MiB, "
                 "and opened anew on SIGHUP");
  app.add_option("--exit-with-parent", options.parent,
                 "stop when the process that started this one ends: its id")
      ->type_name("PID");
  troupe::AddDeviceFlags(app, options);
  CLI::App* command = app.add_subcommand(
      "calibrate", "measures this machine and writes the calibration file");
  troupe::AddDeviceFlags(*command, calibrate.worker);
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
