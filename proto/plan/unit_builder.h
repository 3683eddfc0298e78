// How an architecture writes down its units: parameters laid into flat buffers,
// and bytes of buffers that hold several tensors.
#ifndef TROUPE_PROTO_PLAN_UNIT_BUILDER_H_
#define TROUPE_PROTO_PLAN_UNIT_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Flat buffers start every tensor on a multiple of this many elements: a cache
// line of 64 bytes in bf16, two in f32, so that offsets are the same in both.
inline constexpr int64_t kFlatAlignment = 32;

// The next multiple of kFlatAlignment.
inline int64_t FlatAligned(int64_t elements) {
  return (elements + kFlatAlignment - 1) / kFlatAlignment * kFlatAlignment;
}

// Bytes of tensors of one type laid one after another, each on a cache line.
int64_t BufferBytes(std::initializer_list<int64_t> elements, ElementType dtype);

// Appends parameters to one unit, in the order of their offsets.
class UnitBuilder {
 public:
  // `index`: of the unit in the model. It picks the random sites of the initial
  // values, which are below 2^24 for any model of up to 4096 blocks.
  UnitBuilder(Unit::Kind kind, int64_t index, ElementType dtype);

  // Weight decay applies to all with two dims or more. At most 64 a unit.
  void Add(const std::string& name, std::initializer_list<int64_t> shape,
           Parameter::Init init, double init_std = 0);

  Unit& unit() { return unit_; }

 private:
  const int64_t index_;
  const ElementType dtype_;
  Unit unit_;
};

// What a HEAD has behind its norm, whichever that is: the vocabulary projection
// and the loss.
struct HeadShape {
  int64_t rows = 0;  // sequences x sequence_length
  int64_t width = 0;
  int64_t vocab = 0;
  ElementType dtype = F32;
  int64_t norm_statistics = 1;  // of a row
  std::string tied_to;          // a table of unit 0; empty: lm_head.weight
  double init_std = 0;          // of lm_head.weight
};
// Adds it to the unit, after the norm's parameters, with the bytes and the work
// of the whole unit.
void CompleteHead(const HeadShape& shape, UnitBuilder& builder);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_UNIT_BUILDER_H_
