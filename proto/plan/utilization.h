// MFU: the FLOP/s that a model itself needs, over the peak of the devices that
// train it (PaLM, arXiv 2204.02311, appendix B). The model's FLOPs of a token
// are Derived.model_flops_per_token: recomputation counts nothing.
#ifndef TROUPE_PROTO_PLAN_UTILIZATION_H_
#define TROUPE_PROTO_PLAN_UTILIZATION_H_

#include "proto/plan.pb.h"

namespace troupe {

// FLOP/s of all ranks: those of the datasheets where each device has one, which
// is the paper's peak; else the best products that the workers measured, which
// are lower. 0: neither is known.
double UtilizationPeak(const Prediction& prediction);

// 0 where the peak is not known.
double ModelFlopsUtilization(double tokens_per_second, double flops_per_token,
                             double peak);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_UTILIZATION_H_
