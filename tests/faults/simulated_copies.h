// The copies of its rank's state that a worker keeps in memory, in a simulation
// (proto/plan/copies.h): two, written in turn, so that one is whole while the
// other is written. A copy knows which attempt made the state that it is of, so
// that a state put together of two histories is seen.
#ifndef TROUPE_TESTS_FAULTS_SIMULATED_COPIES_H_
#define TROUPE_TESTS_FAULTS_SIMULATED_COPIES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "proto/worker.pb.h"

namespace troupe {

struct SimulatedCopy {
  int64_t step = -1;
  int32_t made_by = 0;  // the attempt that came to this step; 0: nobody, it is
                        // where the job began
  bool own = false;
  bool peer = false;
  bool whole() const { return own || peer; }
};

class SimulatedCopies {
 public:
  // The older of the two is torn from here on; returns which one that is.
  int Begin() {
    const int older = Newer(copies_[0], copies_[1]) ? 1 : 0;
    copies_[older] = SimulatedCopy();
    return older;
  }
  void End(int which, const SimulatedCopy& copy) { copies_[which] = copy; }
  // Handed on by another rank.
  void Bring(int64_t step, int32_t made_by) {
    copies_[0] = {.step = step, .made_by = made_by, .own = true};
  }
  // What is not the past of this step any more.
  void DropAfter(int64_t step) {
    for (SimulatedCopy& copy : copies_) {
      if (copy.step > step) copy = SimulatedCopy();
    }
  }

  // Null: there is none.
  const SimulatedCopy* Find(int64_t step, bool peer) const {
    for (const SimulatedCopy& copy : copies_) {
      if (copy.step == step && (peer ? copy.peer : copy.own)) return &copy;
    }
    return nullptr;
  }
  std::vector<SimulatedCopy> Whole() const {
    std::vector<SimulatedCopy> whole;
    for (const SimulatedCopy& copy : copies_) {
      if (copy.whole()) whole.push_back(copy);
    }
    return whole;
  }

 private:
  static bool Newer(const SimulatedCopy& a, const SimulatedCopy& b) {
    return a.whole() && (!b.whole() || b.step < a.step);
  }
  std::array<SimulatedCopy, 2> copies_;
};

// After the end of a rank, until its worker is told to forget it or goes on.
struct SimulatedKept {
  RankRef ref;
  SimulatedCopies copies;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_SIMULATED_COPIES_H_
