// Runs the programs of one rank on its state, one after the other, and reads
// what each leaves in SCALARS. A program may be started while the one before it
// is still with the device: that is asked for its scalars behind its last
// instruction and before the next program's first, and nobody waits for them
// but Await.
//
//   ASSIGN_OR_RETURN(auto runs, ProgramRuns::Create(executor, state, clean));
//   ASSIGN_OR_RETURN(const Scalars scalars, runs->Run(validate, step_6, null));
//   runs->Start(train, step_7, nullptr);
//   runs->Start(train, step_8, nullptr);     // when step 7 is issued
//   ASSIGN_OR_RETURN(const ProgramRuns::Ended ended, runs->Await());  // step 7
#ifndef TROUPE_WORKER_ENGINE_PROGRAM_RUNS_H_
#define TROUPE_WORKER_ENGINE_PROGRAM_RUNS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/fence.h"
#include "proto/program.pb.h"
#include "proto/timeline.pb.h"
#include "worker/engine/executor.h"
#include "worker/engine/program_scalars.h"
#include "worker/engine/step_record.h"
#include "worker/rank/page_locked.h"
#include "worker/rank/rank_state.h"

namespace troupe {

// Belongs to one thread.
class ProgramRuns {
 public:
  // Borrows both; `on_failure` as the executor's. ResourceExhausted where there
  // is no host memory for scalars.
  static absl::StatusOr<std::unique_ptr<ProgramRuns>> Create(
      Executor& executor, RankState& state,
      std::function<void(const absl::Status& why)> on_failure);
  // Waits for what was started.
  ~ProgramRuns();

  // Start and Await. REQUIRES that nothing is under way.
  absl::StatusOr<Scalars> Run(const Program& program,
                              const StepContext& context,
                              RankTimeline* timeline);

  // Begins a run for that step, as soon as all of the one before is issued; a
  // run with a timeline, as soon as that is done. `timeline` may be null;
  // program and timeline are borrowed until its Await. Cancelled where the run
  // before has failed, and its Await says why. REQUIRES at most one under way.
  absl::Status Start(const Program& program, const StepContext& context,
                     RankTimeline* timeline);

  // Waits for the oldest run under way. After its error nothing is under way.
  struct Ended {
    Scalars scalars;       // zeros where the program has none
    int64_t ended_ns = 0;  // by the executor's clock
  };
  absl::StatusOr<Ended> Await();

  // Runs that were started and not awaited.
  int under_way() const { return static_cast<int>(under_way_.size()); }

 private:
  struct UnderWay {
    ProgramScalars scalars;
    absl::Span<double> host;  // where they are copied to
    RankTimeline* timeline;
    bool asked = false;                     // for them
    std::unique_ptr<Fence> read = nullptr;  // they have been copied
  };

  ProgramRuns(Executor& executor, RankState& state,
              std::function<void(const absl::Status& why)> on_failure)
      : executor_(executor),
        state_(state),
        on_failure_(std::move(on_failure)) {}

  // Enqueues the copy of its scalars.
  void Ask(UnderWay& run);

  Executor& executor_;
  RankState& state_;
  const std::function<void(const absl::Status& why)> on_failure_;
  std::vector<PageLocked> hosts_;  // taken in turn
  int next_host_ = 0;
  std::set<Program::Kind> ran_;     // programs that have run
  std::deque<UnderWay> under_way_;  // the oldest first
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_PROGRAM_RUNS_H_
