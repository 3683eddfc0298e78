// How long the steps of a job take of which each is one replica's
// (Derived.takes_turns). Replicas do not wait for each other, so their rates
// add up, unless servers cannot follow; where none may be many steps ahead, all
// go at the rate of the slowest.
#ifndef TROUPE_SCHEDULER_SIMULATE_TURN_RATES_H_
#define TROUPE_SCHEDULER_SIMULATE_TURN_RATES_H_

#include <string>
#include <vector>

#include "proto/plan.pb.h"
#include "scheduler/simulate/simulate.h"

namespace troupe {

struct TurnRates {
  double step_seconds = 0;  // from one update of the weights to the next
  // By rank: of all steps, those that it has a part in; 1 of servers.
  std::vector<double> shares;
  std::string limited_by;  // a sentence
};
// `step`: in which each rank takes a step. REQUIRES derived.takes_turns.
TurnRates RatesOfTurns(const Plan& plan, const SteadyStep& step);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_TURN_RATES_H_
