#include "scheduler/daemon_flags.h"

namespace troupe {

void AddDaemonFlags(CLI::App& app, SchedulerDaemonOptions& options) {
  app.add_option("--state", options.state, "Directory of the durable state");
  app.add_option("--listen", options.listen, "HOST:PORT of gRPC")
      ->capture_default_str();
  app.add_option("--http", options.http, "HOST:PORT of the status page")
      ->capture_default_str();
  app.add_option("--http-name", options.http_names,
                 "A name by which browsers ask this host, besides its own")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--certificates", options.trust.certificates,
                 "Directory of its certificate [STATE/trust/scheduler]")
      ->type_name("DIR");
  app.add_flag("--unnamed-workers", options.unnamed_workers,
               "Take workers whose certificates say no worker's name, under "
               "any name");
  app.add_flag("--insecure", options.trust.insecure,
               "No certificates, no TLS; on loopback only, unless given twice");
}

const CLI::App* AddCompileCommand(CLI::App& app, CompileOptions& options) {
  CLI::App* const compile = app.add_subcommand(
      "compile", "Plan one job: CompileRequest on stdin, CompileResponse out");
  compile->add_flag("--programs", options.programs,
                    "Answer with every role's programs");
  compile->add_flag("--timeline", options.timeline,
                    "Answer with the timeline of the predicted step");
  compile->add_flag("--progress", options.progress,
                    "Say on stderr how far a search has come");
  return compile;
}

}  // namespace troupe
