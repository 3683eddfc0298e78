// Following a job until it ends or the user leaves: what `submit --watch`,
// `watch` and `logs --follow` do.
#ifndef TROUPE_CLIENTS_CLI_WATCH_JOB_H_
#define TROUPE_CLIENTS_CLI_WATCH_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/flags.h"
#include "clients/cli/interrupt.h"
#include "clients/cpp/client.h"

namespace troupe {

inline constexpr absl::Duration kWatchPatience = absl::Minutes(2);

struct WatchJobOptions {
  WatchOptions from;
  bool steps = true;          // false: events only, and any end is fine
  // Hears of all that is shown; may be null.
  std::function<void(const WatchJobResponse&)> on_update = nullptr;
  // Whether a user who leaves is told how to come back: the job goes on.
  bool goes_on = true;
  std::string cluster_words;  // ClusterFlags::Words
  // For how long a scheduler that went away is looked for, since it last said
  // something; and how long the first wait between two looks is, each next one
  // twice as long up to the last.
  absl::Duration patience = kWatchPatience;
  absl::Duration look_after = absl::Milliseconds(100);
  absl::Duration look_after_max = absl::Seconds(2);
};

// --patience of the commands that follow a job.
class PatienceFlag {
 public:
  void Declare(Flags& flags);
  absl::Duration patience() const { return absl::Seconds(seconds_); }

 private:
  int64_t seconds_ = absl::ToInt64Seconds(kWatchPatience);
};

// A connection to the scheduler, wherever it is now: one that was started again
// may listen elsewhere.
using ConnectAgain = std::function<absl::StatusOr<std::unique_ptr<Client>>()>;

// OK where the job succeeded; Cancelled, after a hint how to come back, where
// the user left; else what became of the job. Goes on where it was when the
// scheduler went away and comes back in time; else Unavailable.
absl::Status WatchJob(std::unique_ptr<Client> client,
                      const ConnectAgain& connect_again,
                      const WatchJobOptions& options, Interrupt& interrupt,
                      Console& console);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_WATCH_JOB_H_
