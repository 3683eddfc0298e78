// After which step all ranks of a run stop, or save, though only one of them be
// asked. A rank that is asked sets its flags in the sum of a step's scalars.
// Where steps are summed late, ranks learn of it in different programs; all
// stop after the one in which the last of them does. Of later requests to stop
// not all know by then: the first one counts.
#ifndef TROUPE_WORKER_ENGINE_AGREED_STOP_H_
#define TROUPE_WORKER_ENGINE_AGREED_STOP_H_

#include <cstdint>
#include <limits>

namespace troupe {

// How many ranks were asked.
struct StopFlags {
  double stop = 0;
  double save = 0;
};

class AgreedStop {
 public:
  // `lag`: Derived.report_lag.
  explicit AgreedStop(int64_t lag) : lag_(lag) {}

  // The step's flags are summed. Call once for each step, in their order.
  void Heed(int64_t step, const StopFlags& flags);

  bool IsAfter(int64_t step) const { return step == step_; }
  // Whether a checkpoint was asked for. REQUIRES that ranks stop.
  bool save() const { return save_; }
  // Whether one was asked for, and the run goes on.
  bool SavesAfter(int64_t step) const { return step == saves_after_; }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  const int64_t lag_;
  int64_t step_ = kNever;
  bool save_ = false;
  int64_t saves_after_ = kNever;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_AGREED_STOP_H_
