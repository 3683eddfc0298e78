// Plans of roles that are made by hand, and plans whose ranks are told apart,
// so that a fault can be planted in one of them.
#ifndef TROUPE_TESTS_PROTO_PLAN_MADE_ROLES_H_
#define TROUPE_TESTS_PROTO_PLAN_MADE_ROLES_H_

#include <string>
#include <vector>

#include "proto/plan.pb.h"

namespace troupe {

// A pipeline of `places` places, each with a role, without programs, and with
// the planner's lanes. Group 0, "all", is of all of them.
Plan PlanOfPlaces(int places);

// Of the places of a pipeline that are listed.
void AddGroupOf(const std::vector<int>& places, const std::string& name,
                Plan& plan);

// Gives each rank a role of its own with what it had: roles[r] is rank r's.
void SplitRoles(Plan& plan);

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_PLAN_MADE_ROLES_H_
