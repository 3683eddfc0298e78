// The exchanges of a plan, each once: those of one group, collective and size
// are carried out alike, however many ranks and instructions there are.
#ifndef TROUPE_SCHEDULER_SIMULATE_EXCHANGES_H_
#define TROUPE_SCHEDULER_SIMULATE_EXCHANGES_H_

#include <vector>

#include "proto/plan.pb.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/traffic.h"

namespace troupe {

struct PlannedExchange {
  int group = 0;
  Operation operation;
  bool scalars = false;  // REDUCE_SCALARS: all latency
  bool in_step = false;  // of the program that a step runs
};
// By group, collective and size, ascending.
std::vector<PlannedExchange> ExchangesOf(const Plan& plan);

// Of the step, those of groups that span hosts, but for scalars: at most
// kExchangesMax (proto/plan/ways.h), those of the most bytes.
std::vector<ExchangePrediction> PredictExchanges(const Plan& plan,
                                                 const CostModel& costs);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_EXCHANGES_H_
