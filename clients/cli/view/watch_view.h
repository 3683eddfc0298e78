// What `troupe watch` and `troupe submit --watch` show while a job lives: first
// what was derived from the job, then each step, then how it ended. In a pipe
// every step is a line; on a terminal one line is redrawn in place.
#ifndef TROUPE_CLIENTS_CLI_VIEW_WATCH_VIEW_H_
#define TROUPE_CLIENTS_CLI_VIEW_WATCH_VIEW_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/view/step_line.h"
#include "proto/scheduler.pb.h"

namespace troupe {

struct WatchViewOptions {
  bool terminal = false;
  int width = 80;     // columns of the terminal
  bool steps = true;  // false: events only (`troupe logs`)
};

class WatchView {
 public:
  // Borrows `out`.
  WatchView(std::ostream& out, const WatchViewOptions& options)
      : out_(out), options_(options) {}
  // Leaves the cursor on a fresh line.
  ~WatchView();

  void Show(const WatchJobResponse& update);

  // Shows the summary of a job that has ended; OK where it succeeded. Else
  // "job 3 (demo) failed: ..." , "... was cancelled", or Unavailable where the
  // updates ended before the job did.
  absl::Status Finish();

  const JobStatus& status() const { return status_; }

 private:
  void ShowState(const JobStatus& status);
  void ShowDerived(const Mesh& mesh, const Derived& derived);
  void ShowStep(const StepRecord& record);
  void ShowSample(const StepRecord& record);
  void ShowEvent(const JobEvent& event);
  // Leaves the progress line as it is, and shows what was kept for the end.
  void EndProgress();
  // Prints a line that stays, above the progress line.
  void Line(const std::string& text);
  void Redraw(const std::string& text);

  std::ostream& out_;
  const WatchViewOptions options_;
  JobStatus status_;
  std::string plan_;  // as it was shown; empty: not yet
  StepClock clock_;
  StepRecord last_step_;
  double tokens_ = 0;   // of the steps shown
  double seconds_ = 0;  // that they took
  double validation_loss_ = 0;
  bool has_validation_loss_ = false;
  std::string progress_;              // what is on the redrawn line
  std::vector<JobEvent> of_the_end_;  // shown behind the last step
};

// "pipeline 1 x data 4, 2 micro-batches a step on each rank, 8,192 tokens a
// step, 10.8M parameters".
std::string DerivedText(const Mesh& mesh, const Derived& derived);

bool HasEnded(JobState state);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_WATCH_VIEW_H_
