#include "device.h"

TFPLUG_REGISTER_DEVICE(my_device::Platform);
