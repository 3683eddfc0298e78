// --dir, --scheduler and what proves our identity to it, and JOB: what most
// commands need to find their cluster and their job.
#ifndef TROUPE_CLIENTS_CLI_CLUSTER_FLAGS_H_
#define TROUPE_CLIENTS_CLI_CLUSTER_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "clients/cli/command.h"
#include "clients/cli/flags.h"
#include "clients/cpp/client.h"
#include "clients/cpp/find_scheduler.h"

namespace troupe {

class ClusterFlags {
 public:
  void Declare(Flags& flags);

  // The errors of FindScheduler and Client::Connect. A connection that is not
  // secure is told of in red on a terminal.
  absl::StatusOr<Endpoints> Find(const Console& console) const;
  absl::StatusOr<std::unique_ptr<Client>> Connect(const Console& console) const;

  bool is_given() const { return !dir_.empty() || !scheduler_.empty(); }
  // " --dir DIR" as it was given and quoted for a shell, for commands that we
  // suggest; empty where the environment says it.
  std::string Words() const;

 private:
  std::string dir_;
  std::string scheduler_;
  std::string certificates_;
  int insecure_ = 0;
};

// The help's line for a JOB argument.
inline constexpr char kJobHelp[] =
    "The job: its number, its name (the newest of that name), or latest";

// NotFound names the jobs there are.
absl::StatusOr<int64_t> FindJob(Client& client, const std::string& job);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_CLUSTER_FLAGS_H_
