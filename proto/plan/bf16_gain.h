// What bf16 gains over f32 on a worker, as its calibration measured. Processors
// with instructions for bf16 multiply it at twice to many times the rate of
// f32; others multiply it in f32, and gain memory only.
#ifndef TROUPE_PROTO_PLAN_BF16_GAIN_H_
#define TROUPE_PROTO_PLAN_BF16_GAIN_H_

#include <string>

#include "proto/cluster.pb.h"

namespace troupe {

// Rates in bf16 over those in f32: geometric means over what was measured in
// both, 1 where nothing was.
struct Bf16Gain {
  double products = 1;
  double attention = 1;

  // Whether the processor has instructions for it: no f32 code gains so much.
  bool has_instructions() const { return products > 1.3; }
};
Bf16Gain Bf16GainOf(const Calibration& calibration);

// "products in bf16 at 0.95 of f32's rate, attention at 1.02" where products
// are slower; else empty.
std::string Bf16LossText(const Bf16Gain& gain);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_BF16_GAIN_H_
