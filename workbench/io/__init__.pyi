from workbench.io.checksums import crc32c as crc32c
from workbench.io.checksums import masked_crc32c as masked_crc32c
