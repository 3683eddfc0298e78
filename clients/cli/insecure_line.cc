#include "clients/cli/insecure_line.h"

#include "clients/cli/view/format.h"

namespace troupe {

std::string InsecureLine(const Console& console) {
  return RedText(
      "INSECURE     no certificates, no TLS: anyone who reaches the scheduler "
      "may do everything",
      console.terminal);
}

}  // namespace troupe
