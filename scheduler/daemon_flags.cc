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
  app.add_flag("--insecure", options.trust.insecure,
               "No certificates, no TLS; on loopback only, unless given twice");
}

}  // namespace troupe
