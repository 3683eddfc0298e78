#include "proto/plan/unit_builder.h"

#include "proto/base/check.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

constexpr int64_t kCacheLineBytes = 64;
// Random sites of one unit.
constexpr int64_t kSitesPerUnit = 64;

void SetHeadWork(const HeadShape& shape, Unit& unit) {
  const double bytes = static_cast<double>(BytesOfElement(shape.dtype));
  const double rows = static_cast<double>(shape.rows);
  const double inputs = rows * static_cast<double>(shape.width);
  const double logits = rows * static_cast<double>(shape.vocab);
  const double products = 2.0 * inputs * static_cast<double>(shape.vocab);
  Work& forward = *unit.mutable_forward();
  forward.set_matmul_flops(products);
  // The loss reads the logits twice and writes their gradient.
  forward.set_memory_bytes((2.0 * inputs + 3.0 * logits) * bytes);
  forward.set_elementwise_ops(2.0 * logits);
  Work& input = *unit.mutable_backward_input();
  input.set_matmul_flops(products);
  input.set_memory_bytes(3.0 * inputs * bytes);
  Work& weight = *unit.mutable_backward_weight();
  weight.set_matmul_flops(products);
  weight.set_memory_bytes(2.0 * inputs * bytes);
}

}  // namespace

int64_t BufferBytes(std::initializer_list<int64_t> elements,
                    ElementType dtype) {
  int64_t sum = 0;
  for (const int64_t count : elements) {
    const int64_t bytes = count * BytesOfElement(dtype);
    sum += (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  }
  return sum;
}

UnitBuilder::UnitBuilder(Unit::Kind kind, int64_t index, ElementType dtype)
    : index_(index), dtype_(dtype) {
  unit_.set_kind(kind);
}

void UnitBuilder::Add(const std::string& name,
                      std::initializer_list<int64_t> shape,
                      Parameter::Init init, double init_std) {
  CHECK_LT(unit_.parameters_size(), kSitesPerUnit);
  const int64_t site = index_ * kSitesPerUnit + unit_.parameters_size();
  Parameter& parameter = *unit_.add_parameters();
  parameter.set_name(name);
  int64_t elements = 1;
  for (const int64_t dim : shape) {
    parameter.add_shape(dim);
    elements *= dim;
  }
  parameter.set_dtype(dtype_);
  parameter.set_offset(unit_.flat_elements());
  parameter.set_init(init);
  parameter.set_init_std(init_std);
  parameter.set_weight_decay(shape.size() >= 2);
  parameter.set_random_site(static_cast<int32_t>(site));
  unit_.set_flat_elements(unit_.flat_elements() + FlatAligned(elements));
}

void CompleteHead(const HeadShape& shape, UnitBuilder& builder) {
  Unit& unit = builder.unit();
  if (shape.tied_to.empty()) {
    builder.Add("lm_head.weight", {shape.vocab, shape.width}, Parameter::NORMAL,
                shape.init_std);
  } else {
    Unit::Tied& tied = *unit.add_tied();
    tied.set_unit(0);
    tied.set_parameter(shape.tied_to);
  }
  const int64_t inputs = shape.rows * shape.width;
  const int64_t logits = shape.rows * FlatAligned(shape.vocab);
  unit.set_stash_bytes(shape.norm_statistics * BufferBytes({shape.rows}, F32) +
                       BufferBytes({inputs, logits}, shape.dtype));
  unit.set_weight_stash_bytes(BufferBytes({inputs}, shape.dtype));
  SetHeadWork(shape, unit);
}

}  // namespace troupe
