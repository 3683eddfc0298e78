#include "clients/cli/insecure_line.h"

namespace troupe {

std::string InsecureLine(const Console& console) {
  const std::string text =
      "INSECURE     no certificates, no TLS: whoever reaches the scheduler may "
      "do everything";
  return console.terminal ? "\033[1;31m" + text + "\033[0m" : text;
}

}  // namespace troupe
