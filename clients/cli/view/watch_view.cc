#include "clients/cli/view/watch_view.h"

#include <ostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/view/format.h"
#include "proto/base/one_line.h"
#include "proto/plan/mesh.h"

namespace troupe {
namespace {

constexpr size_t kSampleBytesMax = 2000;

std::string JobWords(const JobStatus& status) {
  return absl::StrCat("job ", status.id(), " (", status.name(), ")");
}

double RunSeconds(const JobStatus& status) {
  return (status.finished_unix_ms() - status.started_unix_ms()) * 1e-3;
}

}  // namespace

bool HasEnded(JobState state) {
  return state == SUCCEEDED || state == FAILED || state == CANCELLED;
}

std::string DerivedText(const Mesh& mesh, const Derived& derived) {
  return absl::StrCat(
      MeshText(mesh), ", ",
      derived.replica_micro_batches().empty() ? "" : "up to ",
      derived.micro_batches(),
      derived.micro_batches() == 1 ? " micro-batch" : " micro-batches",
      " a step on each rank, ", GroupedText(derived.tokens_per_step()),
      " tokens a step, ", CountText(derived.parameters()), " parameters",
      derived.active_parameters() == 0
          ? ""
          : absl::StrCat(", ", CountText(derived.active_parameters()),
                         " of them for each token"),
      derived.frozen_parameters() == 0
          ? ""
          : absl::StrCat(", ", CountText(derived.frozen_parameters()),
                         " of them frozen"));
}

WatchView::~WatchView() {
  EndProgress();
  out_ << std::flush;
}

void WatchView::EndProgress() {
  if (!progress_.empty()) out_ << "\n";
  progress_.clear();
  for (const JobEvent& event : of_the_end_) ShowEvent(event);
  of_the_end_.clear();
}

void WatchView::ShowEvent(const JobEvent& event) {
  const bool is_unsaved = !status_.unsaved().empty() &&
                          absl::EndsWith(event.text(), status_.unsaved());
  Line(absl::StrCat(TimeText(event.unix_ms()), "  ",
                    RedText(event.text(), options_.terminal && is_unsaved)));
}

void WatchView::Line(const std::string& text) {
  if (!progress_.empty()) out_ << "\r\x1b[K";
  out_ << text << "\n";
  if (!progress_.empty()) out_ << progress_;
  out_ << std::flush;
}

void WatchView::Redraw(const std::string& text) {
  out_ << "\r\x1b[K" << text << std::flush;
  progress_ = text;
}

// Events tell when a job starts, runs and ends; why it waits is only said here.
void WatchView::ShowState(const JobStatus& status) {
  const bool waits = status.state() == QUEUED && !status.reason().empty() &&
                     status.reason() != status_.reason();
  status_ = status;
  if (waits) Line(absl::StrCat(JobWords(status), " ", status.reason()));
}

void WatchView::ShowDerived(const Mesh& mesh, const Derived& derived) {
  const std::string plan = DerivedText(mesh, derived);
  if (std::exchange(plan_, plan) == plan) return;
  const double predicted = status_.predicted_step_seconds();
  Line(absl::StrCat("plan: ", plan, predicted > 0 ? ", predicted step " : "",
                    predicted > 0 ? SecondsText(predicted) : ""));
}

void WatchView::ShowStep(const StepRecord& record) {
  clock_.Add(record);
  last_step_ = record;
  tokens_ += record.tokens_per_second() * record.step_seconds();
  seconds_ += record.step_seconds();
  if (record.has_validation_loss()) {
    validation_loss_ = record.validation_loss();
    has_validation_loss_ = true;
  }
  const StepProgress progress{
      .steps_total = status_.steps_total(),
      .eta_seconds = clock_.EtaSeconds(status_.steps_total())};
  if (!options_.terminal) {
    Line(StepLine(record, progress));
    ShowSample(record);
    return;
  }
  if (record.has_validation_loss()) Line(StepLine(record, progress));
  ShowSample(record);
  StepRecord shown = record;
  if (has_validation_loss_) shown.set_validation_loss(validation_loss_);
  // The last column stays free: a terminal may wrap on it.
  Redraw(ProgressLine(shown, progress, options_.width - 1));
}

void WatchView::ShowSample(const StepRecord& record) {
  if (!record.has_sample()) return;
  const TextSample& sample = record.sample();
  const auto line = [](const std::string& text) {
    return OneLine(text, kSampleBytesMax);
  };
  Line(sample.error().empty()
           ? absl::StrCat("sample: ", line(sample.prompt()), "|",
                          line(sample.text()))
           : absl::StrCat("sample: none: ", line(sample.error())));
}

void WatchView::Show(const WatchJobResponse& update) {
  if (update.has_status() && options_.steps) ShowState(update.status());
  if (update.has_status()) status_ = update.status();
  for (const JobEvent& event : update.events()) {
    // The last steps may be in this update, or in one that follows.
    const bool of_the_end = HasEnded(status_.state()) && options_.steps &&
                            event.unix_ms() >= status_.finished_unix_ms();
    if (of_the_end) {
      of_the_end_.push_back(event);
    } else {
      ShowEvent(event);
    }
  }
  if (!options_.steps) return;
  if (update.has_derived()) ShowDerived(update.mesh(), update.derived());
  for (const StepRecord& record : update.steps()) ShowStep(record);
}

absl::Status WatchView::Finish() {
  EndProgress();
  if (!HasEnded(status_.state())) {
    return absl::UnavailableError(absl::StrCat(
        "the scheduler stopped reporting while ", JobWords(status_), " was ",
        JobState_Name(status_.state())));
  }
  if (status_.state() == FAILED) {
    return absl::AbortedError(
        absl::StrCat(JobWords(status_), " failed: ", status_.reason()));
  }
  if (status_.state() == CANCELLED) {
    return absl::AbortedError(absl::StrCat(JobWords(status_), " was cancelled",
                                           status_.reason().empty() ? "" : ": ",
                                           status_.reason()));
  }
  std::string text =
      absl::StrCat(JobWords(status_), " SUCCEEDED: ", status_.steps_done(),
                   " steps in ", ClockText(RunSeconds(status_)));
  if (last_step_.step() > 0) {
    absl::StrAppend(&text, ", loss ", NumberText(last_step_.loss(), 4));
  }
  if (has_validation_loss_) {
    absl::StrAppend(&text, ", validation loss ",
                    NumberText(validation_loss_, 4));
  }
  if (seconds_ > 0) {
    absl::StrAppend(&text, ", ", CountText(tokens_ / seconds_), " tokens/s");
  }
  out_ << text << "\n";
  if (status_.checkpoints_size() > 0) {
    out_ << "checkpoint: "
         << status_.checkpoints(status_.checkpoints_size() - 1).path() << "\n";
  }
  out_ << std::flush;
  return absl::OkStatus();
}

}  // namespace troupe
