// The buffers of one program by what they hold: each is declared when it is
// first named, once.
#ifndef TROUPE_SCHEDULER_PASSES_NAMED_BUFFERS_H_
#define TROUPE_SCHEDULER_PASSES_NAMED_BUFFERS_H_

#include <compare>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "proto/plan.pb.h"
#include "proto/program.pb.h"

namespace troupe {

inline constexpr int kNone = -1;

// A value in memory. kNone: it has no unit, or no micro-batch.
struct Value {
  Buffer::Kind kind = Buffer::KIND_UNSPECIFIED;
  int unit = kNone;
  int micro_batch = kNone;  // of what is gathered, the number of the gather
  int output = 0;           // Buffer.output
  auto operator<=>(const Value&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Value& v) {
    return H::combine(std::move(h), v.kind, v.unit, v.micro_batch, v.output);
  }
};

// And which of its copies (Buffer.copy_offset).
using BufferName = std::pair<Value, int>;

class NamedBuffers {
 public:
  // `carried`: values that the role's TRAIN carries to its next runs. Borrows
  // all; declares in `program`.
  NamedBuffers(const Plan& plan, const Role& role,
               const std::set<Value>& carried, Program& program)
      : plan_(plan), role_(role), carried_(carried), program_(program) {}

  // Its index in the program; negative: it has no bytes.
  int Index(const BufferName& name);

  // The values that were named at several offsets.
  std::set<Value> AtSeveralOffsets() const;

 private:
  const Plan& plan_;
  const Role& role_;
  const std::set<Value>& carried_;
  Program& program_;
  absl::flat_hash_map<BufferName, int> indices_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_NAMED_BUFFERS_H_
