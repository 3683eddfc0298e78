// troupe-scheduler: serves until it is told to stop; `compile` plans one job on
// stdin instead.
#include <csignal>
#include <cstdint>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/process_state.h"
#include "scheduler/compile/compile.h"
#include "scheduler/daemon.h"
#include "scheduler/daemon_flags.h"

namespace {

int Serve(const troupe::SchedulerDaemonOptions& options) {
  // Blocked in every thread, so that sigwait below is the one that gets them.
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  signal(SIGPIPE, SIG_IGN);

  auto daemon = troupe::SchedulerDaemon::Start(options);
  if (!daemon.ok()) {
    std::cerr << "troupe-scheduler: " << daemon.status().message() << "\n";
    return 1;
  }
  std::cout << "grpc " << (*daemon)->grpc_address() << "\nhttp "
            << (*daemon)->http_url() << std::endl;
  int signal_number = 0;
  sigwait(&stops, &signal_number);
  (*daemon)->EndJobs(sigabbrev_np(signal_number), [&stops] {
    constexpr timespec kLook = {.tv_sec = 0, .tv_nsec = 50'000'000};
    return sigtimedwait(&stops, nullptr, &kLook) > 0;
  });
  troupe::LogInfo("stopping");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Troupe's scheduler", "troupe-scheduler");
  troupe::SchedulerDaemonOptions options;
  std::string log;
  int64_t parent = 0;
  troupe::AddDaemonFlags(app, options);
  app.add_option("--log", log,
                 "Write the log to this file too; it is rotated at 64 MiB, and "
                 "opened anew on SIGHUP");
  app.add_option("--exit-with-parent", parent,
                 "Stop when the process that started this one ends: its id")
      ->type_name("PID");
  troupe::CompileOptions of_plan;
  const CLI::App* compile = troupe::AddCompileCommand(app, of_plan);
  CLI11_PARSE(app, argc, argv);
  if (compile->parsed()) {
    return troupe::CompileMain(of_plan, std::cin, std::cout);
  }
  if (options.state.empty()) {
    std::cerr << "troupe-scheduler: give a directory with --state DIR\n";
    return 2;
  }
  if (absl::Status status =
          troupe::StartLog({.name = "scheduler", .file = log});
      !status.ok()) {
    std::cerr << "troupe-scheduler: " << status.message() << "\n";
    return 1;
  }
  if (parent != 0 && !troupe::EndWithParent(parent)) {
    troupe::LogInfo(absl::StrCat("stopping: process ", parent,
                                 ", which started this one, is gone"));
    return 0;
  }
  return Serve(options);
}
