// Which adapters of a node carry what each of its places sends to other nodes.
#ifndef TROUPE_CLIENTS_CLUSTER_FILE_NODE_NICS_H_
#define TROUPE_CLIENTS_CLUSTER_FILE_NODE_NICS_H_

#include <vector>

#include "proto/cluster_spec.pb.h"

namespace troupe {

struct NodeNics {
  std::vector<double> gb_s;  // of each adapter, in each direction
  // By place of the node: adapters, ascending. Empty: none serves it.
  std::vector<std::vector<int>> of_place;
};

// As NicSpec.devices says it. REQUIRES counts and places in range.
NodeNics NicsOf(const NodeSpec& node);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLUSTER_FILE_NODE_NICS_H_
