// What rows that hand tensors around a ring of ranks write into a table.
#ifndef TROUPE_SCHEDULER_LAYOUTS_RING_H_
#define TROUPE_SCHEDULER_LAYOUTS_RING_H_

#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/table_writer.h"

namespace troupe {

// A tensor that goes around, a rank further at each hop, and comes back in
// backward, its value and its gradient:
//
//   Around keys(axis, k, writer);
//   for (int hop = 0; hop < axis.size; ++hop) {
//     const int here = keys.Arrive();   // of the rank `hop` places before
//     ...                               // one op that reads it
//     keys.GoOn();
//   }
class Around {
 public:
  Around(const AxisSpan& axis, int tensor, TableWriter& writer)
      : axis_(axis), writer_(writer), arrived_(tensor) {}

  int Arrive();
  void GoOn();

 private:
  bool is_last() const { return hop_ + 1 == axis_.size; }

  const AxisSpan& axis_;
  TableWriter& writer_;
  int hop_ = 0;
  int arrived_;
  int here_ = -1;
  int going_on_ = -1;
};

// Of a ring in which keys and values go around (ring_attention.cc).
RowAxis RingAxis();

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_RING_H_
