// A processor whose cores several ranks share, in virtual time. An instruction
// wants some cores for so long; where those that run want more cores than there
// are, all slow down alike, as under the kernel's fair scheduling (processor
// sharing, Kleinrock 1967). Ranks that wait take nothing.
//
// The processor keeps a clock that slows down with them: an instruction that
// starts when the clock shows V and needs n ns is done when it shows V + n,
// whatever starts and ends meanwhile. So each event costs O(log n).
#ifndef TROUPE_SCHEDULER_SIMULATE_PROCESSOR_H_
#define TROUPE_SCHEDULER_SIMULATE_PROCESSOR_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "proto/plan/meeting.h"

namespace troupe {

class Processor {
 public:
  explicit Processor(double cores) : cores_(cores) {}

  struct Task {
    RankInstruction at;
    double cores = 1;  // wanted while it runs
    int64_t ns = 0;    // when it gets them
  };
  // Times of calls never decrease.
  void Start(int64_t now, const Task& task);

  bool idle() const { return running_.empty(); }

  // When the next of those that run ends, if nothing else starts before.
  // REQUIRES !idle().
  int64_t NextEnd() const;

  // Takes out those that have ended by now, the earliest first.
  std::vector<RankInstruction> TakeEnded(int64_t now);

 private:
  struct Running {
    double end = 0;  // by the processor's clock
    Task task;
    bool operator>(const Running& other) const;
  };

  void AdvanceTo(int64_t now);
  double Rate() const { return wanted_ <= cores_ ? 1 : cores_ / wanted_; }

  const double cores_;
  double wanted_ = 0;
  int64_t now_ = 0;
  double clock_ = 0;  // ns
  std::priority_queue<Running, std::vector<Running>, std::greater<Running>>
      running_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_PROCESSOR_H_
