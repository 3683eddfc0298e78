// Integers that cannot be mistaken for one another: a JobId is not a WorkerId.
//
//   using JobId = StrongId<struct JobTag>;
//   absl::flat_hash_map<JobId, Job> jobs;
#ifndef TROUPE_PROTO_BASE_IDS_H_
#define TROUPE_PROTO_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <ostream>
#include <utility>

namespace troupe {

template <typename Tag>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(int64_t value) : value_(value) {}
  constexpr int64_t value() const { return value_; }
  constexpr auto operator<=>(const StrongId&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, StrongId id) {
    return out << id.value_;
  }

 private:
  int64_t value_ = 0;
};

using JobId = StrongId<struct JobTag>;
using WorkerId = StrongId<struct WorkerTag>;

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_IDS_H_
