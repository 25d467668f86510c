-- In the clear on paris: 2 schemas, 1 tablespace, 5 tables, 1 unknown file. To rewrite: 1.0 GiB.
-- It belongs on the active site: kubectl mfg adopt orders -n shop --tables | kubectl mfg mysql orders paris -n shop
ALTER SCHEMA `legacy-1` DEFAULT ENCRYPTION='Y';
ALTER SCHEMA `shop` DEFAULT ENCRYPTION='Y';
ALTER TABLESPACE `archive ts` ENCRYPTION='Y';  -- 1.0 GiB
-- MyISAM cannot be encrypted, and another engine may behave in another way: ALTER TABLE `legacy-1`.`t``1\nDROP` ENGINE=InnoDB ENCRYPTION='Y';
ALTER TABLE `legacy-1`.`in space` TABLESPACE=innodb_file_per_table ENCRYPTION='Y';
ALTER TABLE `shop`.`items` ENCRYPTION='Y';  -- 12.0 MiB
ALTER TABLE `shop`.`items#p#x` ENCRYPTION='Y';  -- 112.0 KiB
ALTER TABLE `shop`.`orders` ENCRYPTION='Y';  -- 224.0 KiB
-- shop/#sql-ib1064-1: no table of that name was found
