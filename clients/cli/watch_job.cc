#include "clients/cli/watch_job.h"

#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cli/view/watch_view.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// One watch over several connections.
class Following {
 public:
  Following(const ConnectAgain& connect_again, const WatchJobOptions& options,
            Interrupt& interrupt, Console& console)
      : connect_again_(connect_again),
        options_(options),
        interrupt_(interrupt),
        console_(console),
        from_(options.from),
        view_(console.out, {.terminal = console.terminal,
                            .width = console.width,
                            .steps = options.steps}) {}

  absl::Status Run(std::unique_ptr<Client> client) {
    while (true) {
      const absl::Status status = client->Watch(
          from_, [this](const WatchJobResponse& update) { Show(update); },
          [this] { return !interrupt_.Arrived(); });
      if (HasEnded(view_.status().state())) break;
      // A scheduler that ends closes the stream, or breaks it.
      if (!status.ok() && !absl::IsUnavailable(status)) return status;
      console_.err << "troupe: "
                   << (status.ok() ? "the scheduler ended" : status.message())
                   << "; looking for it again for "
                   << absl::FormatDuration(options_.patience) << std::endl;
      ASSIGN_OR_RETURN(client, FindAgain());
      console_.err << "troupe: found the scheduler at " << client->address()
                   << std::endl;
    }
    return options_.steps ? view_.Finish() : absl::OkStatus();
  }

 private:
  void Show(const WatchJobResponse& update) {
    if (update.steps_size() > 0) {
      from_.from_step = update.steps(update.steps_size() - 1).step();
    }
    from_.from_event += update.events_size();
    view_.Show(update);
  }

  absl::StatusOr<std::unique_ptr<Client>> FindAgain() {
    const absl::Time deadline = absl::Now() + options_.patience;
    while (true) {
      if (interrupt_.Arrived()) return absl::CancelledError("interrupted");
      absl::StatusOr<std::unique_ptr<Client>> client = connect_again_();
      if (client.ok() || absl::Now() > deadline) return client;
      absl::SleepFor(options_.look_every);
    }
  }

  const ConnectAgain& connect_again_;
  const WatchJobOptions& options_;
  Interrupt& interrupt_;
  Console& console_;
  WatchOptions from_;
  WatchView view_;
};

}  // namespace

absl::Status WatchJob(std::unique_ptr<Client> client,
                      const ConnectAgain& connect_again,
                      const WatchJobOptions& options, Interrupt& interrupt,
                      Console& console) {
  const absl::Status status =
      Following(connect_again, options, interrupt, console)
          .Run(std::move(client));
  if (absl::IsCancelled(status)) {
    console.err << "troupe: left job " << options.from.id
                << ", which goes on: troupe watch " << options.from.id
                << options.cluster_words << "  (or: troupe cancel "
                << options.from.id << options.cluster_words << ")\n";
  }
  return status;
}

}  // namespace troupe
