// What makers state of common GPUs: peak rates of dense products. No step
// reaches them; MFU is measured against them (proto/plan/utilization.h).
#ifndef TROUPE_WORKER_SERVICE_DATASHEETS_H_
#define TROUPE_WORKER_SERVICE_DATASHEETS_H_

#include <string>
#include <vector>

#include "proto/cluster.pb.h"

namespace troupe {

// Of a GPU by the name that its driver gives, "NVIDIA H100 80GB HBM3". bf16 and
// fp16 are products on tensor cores that are summed in f32, without sparsity;
// f32 is without TF32, as it is multiplied here. None: the GPU is not in the
// table.
std::vector<DatasheetRate> DatasheetOf(const std::string& gpu_name);

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_DATASHEETS_H_
