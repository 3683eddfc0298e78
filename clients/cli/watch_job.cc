#include "clients/cli/watch_job.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cli/view/watch_view.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

// How often a user who leaves is heard between two looks.
constexpr absl::Duration kInterruptEvery = absl::Milliseconds(50);
constexpr int64_t kPatienceMax = 7 * 24 * 60 * 60;

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
      // The curve of a job that has ended takes several responses: where the
      // stream breaks in between, the rest is still to come.
      if (status.ok() && HasEnded(view_.status().state())) break;
      // A scheduler that ends closes the stream, or breaks it.
      if (!status.ok() && !absl::IsUnavailable(status)) return status;
      ASSIGN_OR_RETURN(client, FindAgain(status));
      console_.err << "troupe: found the scheduler at " << client->address()
                   << std::endl;
    }
    return options_.steps ? view_.Finish() : absl::OkStatus();
  }

 private:
  void Show(const WatchJobResponse& update) {
    heard_ = true;
    if (update.steps_size() > 0) {
      from_.from_step = update.steps(update.steps_size() - 1).step();
    }
    from_.from_event += update.events_size();
    view_.Show(update);
    if (options_.on_update != nullptr) options_.on_update(update);
  }

  // `why`: how the stream ended. One that answers and then says nothing of the
  // job, again and again, has no more time than one that does not answer.
  absl::StatusOr<std::unique_ptr<Client>> FindAgain(const absl::Status& why) {
    if (heard_) {
      deadline_ = SteadyNow() + options_.patience;
      look_after_ = options_.look_after;
      console_.err << "troupe: "
                   << (why.ok() ? "the scheduler ended" : why.message())
                   << "; looking for it again for "
                   << absl::FormatDuration(options_.patience) << std::endl;
    }
    bool looked = !heard_;
    heard_ = false;
    absl::Status last = why;
    while (!looked || SteadyNow() < deadline_) {
      if (!Rest()) return absl::CancelledError("interrupted");
      absl::StatusOr<std::unique_ptr<Client>> client = connect_again_();
      if (client.ok()) return client;
      last = client.status();
      looked = true;
    }
    return absl::UnavailableError(
        absl::StrCat("the scheduler did not come back within ",
                     absl::FormatDuration(options_.patience), ": ",
                     last.ok() ? "it says nothing of the job" : last.message(),
                     "; what has become of job ", from_.id,
                     " says, once it is back: troupe watch ", from_.id,
                     options_.cluster_words));
  }

  // Waits for the next look; false: the user leaves.
  bool Rest() {
    const absl::Time end = std::min(SteadyNow() + look_after_, deadline_);
    look_after_ = std::min(2 * look_after_, options_.look_after_max);
    while (!interrupt_.Arrived()) {
      const absl::Duration left = end - SteadyNow();
      if (left <= absl::ZeroDuration()) return true;
      absl::SleepFor(std::min(left, kInterruptEvery));
    }
    return false;
  }

  const ConnectAgain& connect_again_;
  const WatchJobOptions& options_;
  Interrupt& interrupt_;
  Console& console_;
  WatchOptions from_;
  WatchView view_;
  bool heard_ = true;    // something, since the scheduler was found
  absl::Time deadline_;  // of looking for it
  absl::Duration look_after_;
};

}  // namespace

void PatienceFlag::Declare(Flags& flags) {
  flags.Integer("--patience", seconds_, {.least = 0, .most = kPatienceMax},
                {.value = "SECONDS",
                 .text = "How long to look for a scheduler that went away, "
                         "before giving up [120]"});
}

absl::Status WatchJob(std::unique_ptr<Client> client,
                      const ConnectAgain& connect_again,
                      const WatchJobOptions& options, Interrupt& interrupt,
                      Console& console) {
  const absl::Status status =
      Following(connect_again, options, interrupt, console)
          .Run(std::move(client));
  if (absl::IsCancelled(status) && options.goes_on) {
    console.err << "troupe: left job " << options.from.id
                << ", which goes on: troupe watch " << options.from.id
                << options.cluster_words << "  (or: troupe cancel "
                << options.from.id << options.cluster_words << ")\n";
  }
  return status;
}

}  // namespace troupe
