#include "tests/proto/plan/made_roles.h"

#include <utility>

#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "scheduler/passes/lanes.h"

namespace troupe {

Plan PlanOfPlaces(int places) {
  Plan plan;
  *plan.mutable_lanes() = AllLanes();
  Axis& pipeline = *plan.mutable_mesh()->add_axes();
  pipeline.set_name("pipeline");
  pipeline.set_size(places);
  for (int p = 0; p < places; ++p) {
    Role::Place& at = *plan.add_roles()->add_at();
    at.set_axis("pipeline");
    at.set_place(p);
  }
  AddGroupOf({}, "all", plan);
  return plan;
}

void AddGroupOf(const std::vector<int>& places, const std::string& name,
                Plan& plan) {
  Group& group = *plan.add_groups();
  group.set_name(name);
  Group::Span& span = *group.add_spans();
  span.set_axis("pipeline");
  span.mutable_places()->Assign(places.begin(), places.end());
}

void SplitRoles(Plan& plan) {
  std::vector<Role> split;
  for (int r = 0; r < MeshSize(plan.mesh()); ++r) {
    Role role = RoleOf(plan, r);
    role.clear_at();
    const std::vector<int> places = Coordinates(plan.mesh(), r);
    for (int i = 0; i < plan.mesh().axes_size(); ++i) {
      Role::Place& at = *role.add_at();
      at.set_axis(plan.mesh().axes(i).name());
      at.set_place(places[i]);
    }
    split.push_back(std::move(role));
  }
  plan.mutable_roles()->Assign(split.begin(), split.end());
}

}  // namespace troupe
