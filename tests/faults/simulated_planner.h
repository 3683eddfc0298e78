// Planning as the cluster sees it, in a simulation: what it asks to be compiled
// is ready some time later, not always in the order of the questions, or, of
// other numbers of ranks than jobs ask for, ended because it took too long; and
// clients submit with plans for workers that may be gone or busy by then.
#ifndef TROUPE_TESTS_FAULTS_SIMULATED_PLANNER_H_
#define TROUPE_TESTS_FAULTS_SIMULATED_PLANNER_H_

#include <random>
#include <utility>
#include <vector>

#include "scheduler/cluster/cluster.h"
#include "tests/scheduler/cluster/fake_compiler.h"

namespace troupe {

class SimulatedPlanner {
 public:
  // Borrows it.
  explicit SimulatedPlanner(const FakeCompiler& compiler)
      : compiler_(compiler) {}

  void Ask(const CompileJob& asked) { under_way_.push_back(asked); }
  bool idle() const { return under_way_.empty(); }

  // One of the compilations under way comes to its end.
  void FinishOne(std::mt19937& random, Cluster& cluster, absl::Time now,
                 Actions& actions) {
    if (under_way_.empty()) return;
    const auto it = under_way_.begin() + random() % under_way_.size();
    const CompileJob asked = *it;
    under_way_.erase(it);
    cluster.Compiled(asked.job, *asked.compilation, OutcomeOf(asked), now,
                     actions);
  }
  // From now on none is ended. True: some was.
  bool LeavesOff() {
    ends_some_ = false;
    return ended_;
  }

  // What a client considered when the last job was submitted; then considers
  // this one. So outcomes are old when they are used.
  CompileOutcome Consider(const JobSpec& spec, const Cluster& cluster) {
    CompileOutcome next;
    const auto compilation = cluster.Consider(spec);
    if (compilation.ok()) next = CompileFirstFit(compiler_, *compilation);
    return std::exchange(considered_, std::move(next));
  }

  // The scheduler's end is that of its planner.
  void Restart() {
    under_way_.clear();
    considered_ = CompileOutcome();
  }

 private:
  CompileOutcome OutcomeOf(const CompileJob& asked) {
    const Compilation& compilation = *asked.compilation;
    if (!ends_some_ || !compilation.elastic || compilation.number % 8 != 0) {
      return CompileFirstFit(compiler_, compilation);
    }
    ended_ = true;
    CompileOutcome outcome;
    outcome.refusal = absl::DeadlineExceededError("planning took too long");
    outcome.changes = compilation.changes;
    return outcome;
  }

  const FakeCompiler& compiler_;
  bool ends_some_ = true;
  bool ended_ = false;
  std::vector<CompileJob> under_way_;
  CompileOutcome considered_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_SIMULATED_PLANNER_H_
