// Plans of units alone, and what CheckUnits says of one that was damaged.
#ifndef TROUPE_TESTS_PROTO_PLAN_UNIT_FAULTS_H_
#define TROUPE_TESTS_PROTO_PLAN_UNIT_FAULTS_H_

#include <functional>
#include <string>

#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// The units of a model, for two sequences of 5 positions, and their tables;
// with adapters, where `lora` says so.
Plan PlanOfUnits(const ModelSpec& model, const LoraSpec* lora = nullptr);

// What is wrong with it then; fails the test where nothing is.
std::string UnitFaultOf(Plan plan, const std::function<void(Plan&)>& damage);

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_PLAN_UNIT_FAULTS_H_
