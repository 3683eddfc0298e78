#include "proto/plan/utilization.h"

namespace troupe {

double UtilizationPeak(const Prediction& prediction) {
  return prediction.datasheet_flops_per_second() > 0
             ? prediction.datasheet_flops_per_second()
             : prediction.peak_flops_per_second();
}

double ModelFlopsUtilization(double tokens_per_second, double flops_per_token,
                             double peak) {
  return peak > 0 ? tokens_per_second * flops_per_token / peak : 0;
}

}  // namespace troupe
