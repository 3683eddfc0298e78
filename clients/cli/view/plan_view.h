// A plan for people: what was derived, the memory of each rank and tier by line
// item, what the simulator predicts and what limits it, the job as resolved,
// and on request every role's programs.
#ifndef TROUPE_CLIENTS_CLI_VIEW_PLAN_VIEW_H_
#define TROUPE_CLIENTS_CLI_VIEW_PLAN_VIEW_H_

#include <string>

#include "proto/plan.pb.h"

namespace troupe {

// All but the programs.
std::string PlanText(const Plan& plan);

// Line items by tier in rows; ranks with the same numbers share a column.
std::string MemoryTable(const Prediction& prediction);

// Every role's programs, one instruction a line, and which ranks have it.
std::string ProgramsText(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_PLAN_VIEW_H_
