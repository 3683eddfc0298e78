#include "worker/engine/program_runs.h"

#include <utility>

#include "absl/memory/memory.h"
#include "proto/base/status.h"
#include "proto/plan/span.h"
#include "proto/plan/sums.h"
#include "worker/instructions/instructions.h"

namespace troupe {
namespace {

// As many as the executor has in progress.
constexpr int kRunsMax = 2;

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramRuns>> ProgramRuns::Create(
    Executor& executor, RankState& state,
    std::function<void(const absl::Status& why)> on_failure) {
  auto runs =
      absl::WrapUnique(new ProgramRuns(executor, state, std::move(on_failure)));
  for (int i = 0; i < kRunsMax; ++i) {
    ASSIGN_OR_RETURN(PageLocked host,
                     PageLocked::Create(state.device, SumsBytes(*state.plan)));
    runs->hosts_.push_back(std::move(host));
  }
  return runs;
}

ProgramRuns::~ProgramRuns() {
  while (!under_way_.empty()) Await().status().IgnoreError();
  // Also after a failure, copies may be in the queue of this thread.
  state_.device.Synchronize().IgnoreError();
}

absl::StatusOr<Scalars> ProgramRuns::Run(const Program& program,
                                         const StepContext& context,
                                         RankTimeline* timeline) {
  RETURN_IF_ERROR(Start(program, context, timeline));
  ASSIGN_OR_RETURN(const Ended ended, Await());
  return ended.scalars;
}

absl::Status ProgramRuns::Start(const Program& program,
                                const StepContext& context,
                                RankTimeline* timeline) {
  if (!under_way_.empty()) {
    RETURN_IF_ERROR(executor_.Follow());
    Ask(under_way_.back());
  }
  // All instructions before have read what they need of the state.
  state_.step = context;
  // What REPORT sums, others may sum in TRAIN.
  state_.step.meet =
      program.kind() != Program::REPORT && ran_.insert(program.kind()).second;
  state_.squared_norm.reset();
  state_.skips = false;
  state_.snapshot.clear();
  UnderWay run = {
      .scalars = ProgramScalars(program, state_.memory, context.step),
      .host = absl::MakeSpan(static_cast<double*>(hosts_[next_host_].data()),
                             SumElements(state_.plan->sums())),
      .timeline = timeline};
  run.scalars.Begin(state_.device);
  RETURN_IF_ERROR(executor_.Start(
      program,
      {.run =
           [this, &program](int index) {
             return RunInstruction(
                 {state_, program, program.instructions(index)});
           },
       .outcome =
           [this, &program](int index, const absl::Status& queue) {
             return OutcomeOf({state_, program, program.instructions(index)},
                              queue);
           },
       .on_failure = on_failure_,
       .step = context.step},
      timeline));
  next_host_ = (next_host_ + 1) % kRunsMax;
  under_way_.push_back(std::move(run));
  return absl::OkStatus();
}

void ProgramRuns::Ask(UnderWay& run) {
  run.scalars.Read(state_.device, run.host);
  run.read = state_.device.Record(FenceUse::kOrder);
  run.asked = true;
}

absl::StatusOr<ProgramRuns::Ended> ProgramRuns::Await() {
  const absl::StatusOr<int64_t> ended_ns = executor_.Await();
  UnderWay run = std::move(under_way_.front());
  under_way_.pop_front();
  if (!ended_ns.ok()) {
    under_way_.clear();
    return ended_ns.status();
  }
  if (!run.asked) Ask(run);
  const absl::Status read =
      run.read != nullptr ? run.read->Await() : absl::OkStatus();
  if (!read.ok()) {
    // The next one fails, too, or has failed.
    while (!under_way_.empty()) Await().status().IgnoreError();
    return read;
  }
  if (run.timeline != nullptr) NameRanks(*state_.plan, *run.timeline);
  return Ended{.scalars = {run.host.begin(), run.host.end()},
               .ended_ns = *ended_ns};
}

}  // namespace troupe
