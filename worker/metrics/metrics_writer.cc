#include "worker/metrics/metrics_writer.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "worker/actor/thread_name.h"

namespace troupe {
namespace {

std::string RowsWords(int64_t rows) {
  return rows == 1 ? "1 row" : absl::StrCat(rows, " rows");
}

}  // namespace

// What the writer and its thread share.
struct MetricsWriter::State {
  State(std::unique_ptr<MetricsFile> of, const MetricsWriterOptions& with)
      : options(with),
        name(of->path()),
        file(std::move(of)),
        notice(with.notice) {}

  // Without `mutex`: the receiver may be slow to take it.
  void Say(const std::string& text) ABSL_LOCKS_EXCLUDED(mutex, notice_mutex) {
    absl::MutexLock lock(&notice_mutex);
    if (notice != nullptr) notice(text);
  }

  void LeaveOut(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    left_out_first = left_out == 0 ? step : std::min(left_out_first, step);
    left_out_last = left_out == 0 ? step : std::max(left_out_last, step);
    ++left_out;
  }

  // "12 rows between step 3 and step 17 were left out", and the count begins
  // anew; empty: none were.
  std::string TakeLeftOut() ABSL_LOCKS_EXCLUDED(mutex) {
    absl::MutexLock lock(&mutex);
    if (left_out == 0) return "";
    return absl::StrCat(RowsWords(std::exchange(left_out, 0)), " between step ",
                        left_out_first, " and step ", left_out_last,
                        " were left out");
  }

  const MetricsWriterOptions options;
  const std::string name;
  const std::unique_ptr<MetricsFile> file;  // the thread's

  absl::Mutex mutex;
  SteadyCondition changed;
  std::deque<Row> rows ABSL_GUARDED_BY(mutex);
  bool closing ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  int64_t left_out ABSL_GUARDED_BY(mutex) = 0;
  int64_t left_out_first ABSL_GUARDED_BY(mutex) = 0;  // steps
  int64_t left_out_last ABSL_GUARDED_BY(mutex) = 0;

  absl::Mutex notice_mutex;
  // Null: nobody wants to hear any more.
  std::function<void(const std::string&)> notice ABSL_GUARDED_BY(notice_mutex);
};

// What the thread does: one operation on the file after the other.
class MetricsWriter::Thread {
 public:
  explicit Thread(State& state)
      : state_(state),
        file_(*state.file),
        started_(state.options.started),
        synced_(SteadyNow()) {}

  void Run() {
    while (true) {
      const Turn turn = AwaitTurn();
      const absl::Status status = Take(turn);
      gives_up_ = turn.closing && !status.ok();
      if (!status.ok()) {
        Failed(status);
      } else if (!turn.ends) {
        Succeeded();
      }
      if (turn.ends) break;
    }
    absl::MutexLock lock(&state_.mutex);
    state_.ended = true;
    state_.changed.Say();
  }

 private:
  struct Turn {
    Row row;               // the next one; null: none waits
    bool closing = false;  // the last chance of a row to be written
    bool ends = false;     // nothing follows
  };

  bool fails() const { return pause_ > absl::ZeroDuration(); }

  Turn AwaitTurn() {
    absl::MutexLock lock(&state_.mutex);
    const auto due = [this]() ABSL_SHARED_LOCKS_REQUIRED(state_.mutex) {
      return state_.closing ||
             (!fails() && (!started_ || !state_.rows.empty()));
    };
    absl::Duration limit = absl::InfiniteDuration();
    if (fails()) {
      limit = pause_;
    } else if (unsynced_) {
      limit = synced_ + state_.options.sync_every - SteadyNow();
    }
    state_.changed.Await(state_.mutex, limit, due);
    Turn turn = {.closing = state_.closing};
    if (!state_.rows.empty()) turn.row = state_.rows.front();
    turn.ends = turn.closing && (turn.row == nullptr || gives_up_);
    return turn;
  }

  absl::Status Take(const Turn& turn) {
    if (!started_) return turn.ends ? absl::OkStatus() : Start();
    if (turn.row != nullptr && !turn.ends) return Append(turn.row);
    return unsynced_ ? Sync() : absl::OkStatus();
  }

  absl::Status Start() {
    ASSIGN_OR_RETURN(const std::vector<std::string> notices, file_.Start());
    started_ = true;
    for (const std::string& text : notices) state_.Say(text);
    return absl::OkStatus();
  }

  absl::Status Append(const Row& row) {
    RETURN_IF_ERROR(file_.Append(*row));
    unsynced_ = true;
    absl::MutexLock lock(&state_.mutex);
    // Close may have given them up.
    if (!state_.rows.empty()) state_.rows.pop_front();
    return absl::OkStatus();
  }

  absl::Status Sync() {
    synced_ = SteadyNow();
    RETURN_IF_ERROR(file_.Sync());
    unsynced_ = false;
    return absl::OkStatus();
  }

  void Failed(const absl::Status& status) {
    if (!std::exchange(has_failed_, true)) {
      state_.Say(
          absl::StrCat("metrics cannot be written now, and training goes on: ",
                       status.message()));
    }
    pause_ = std::min(std::max(state_.options.retry_first, 2 * pause_),
                      state_.options.retry_max);
  }

  // Says so when the rows that waited are written, too.
  void Succeeded() {
    pause_ = absl::ZeroDuration();
    {
      absl::MutexLock lock(&state_.mutex);
      if (!state_.rows.empty()) return;
    }
    const std::string left_out = state_.TakeLeftOut();
    if (std::exchange(has_failed_, false) || !left_out.empty()) {
      state_.Say(
          absl::StrCat(file_.path(), " is written again; ",
                       left_out.empty() ? "no row is missing" : left_out));
    }
  }

  State& state_;
  MetricsFile& file_;
  bool started_;
  bool unsynced_ = false;
  absl::Time synced_;
  absl::Duration pause_;     // before the next try; zero: the last succeeded
  bool has_failed_ = false;  // and that it is over was not said
  bool gives_up_ = false;
};

MetricsWriter::MetricsWriter(std::unique_ptr<MetricsFile> file,
                             const MetricsWriterOptions& options)
    : state_(std::make_shared<State>(std::move(file), options)),
      thread_([state = state_] {
        NameThisThread("metrics");
        Thread(*state).Run();
      }) {}

MetricsWriter::~MetricsWriter() { Close(absl::ZeroDuration()); }

void MetricsWriter::Add(Row row) {
  State& state = *state_;
  const int64_t step = row->record.step();
  {
    absl::MutexLock lock(&state.mutex);
    if (state.rows.size() < state.options.rows_max) {
      state.rows.push_back(std::move(row));
      state.changed.Say();
      return;
    }
    const bool is_first = state.left_out == 0;
    state.LeaveOut(step);
    if (!is_first) return;
  }
  state.Say(absl::StrCat(
      state.name, ": ", RowsWords(state.options.rows_max),
      " wait for the disk, and no more can; rows are left out from step ", step,
      " on until it takes some. Training goes on"));
}

void MetricsWriter::Close(absl::Duration patience) {
  if (!thread_.joinable()) return;
  State& state = *state_;
  bool ended = false;
  {
    absl::MutexLock lock(&state.mutex);
    state.closing = true;
    state.changed.Say();
    const auto is_over = [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mutex) {
      return state.ended;
    };
    ended = state.changed.Await(state.mutex, patience, is_over);
    for (const Row& row : state.rows) state.LeaveOut(row->record.step());
    state.rows.clear();
  }
  const std::string left_out = state.TakeLeftOut();
  if (!left_out.empty()) {
    state.Say(absl::StrCat(state.name, " is closed; ", left_out));
  }
  {
    absl::MutexLock lock(&state.notice_mutex);
    state.notice = nullptr;
  }
  if (ended) {
    thread_.join();
  } else {
    LogWarning(absl::StrCat(state.name, ": its disk hangs; it is given up"));
    thread_.detach();
  }
}

}  // namespace troupe
