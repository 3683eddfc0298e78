#include "clients/cluster_file/node_nics.h"

namespace troupe {

NodeNics NicsOf(const NodeSpec& node) {
  int adapters = 0;
  for (const NicSpec& nic : node.nics()) adapters += nic.count();
  NodeNics nics;
  nics.of_place.resize(node.workers());
  for (const NicSpec& nic : node.nics()) {
    for (int i = 0; i < nic.count(); ++i) {
      const int adapter = static_cast<int>(nics.gb_s.size());
      nics.gb_s.push_back(nic.bandwidth_gb_s());
      for (const int place : nic.devices()) {
        nics.of_place[place].push_back(adapter);
      }
      if (!nic.devices().empty()) continue;
      for (int place = 0; place < node.workers(); ++place) {
        if (place % adapters == adapter || adapter % node.workers() == place) {
          nics.of_place[place].push_back(adapter);
        }
      }
    }
  }
  return nics;
}

}  // namespace troupe
