class CreateContactRequests < ActiveRecord::Migration[6.1]
  disable_ddl_transaction!

  def change
    # The website and the worker wait for each other, instead of being refused. Rails 7.1 does it by itself.
    up_only { execute "PRAGMA journal_mode = WAL" if connection.adapter_name == "SQLite" }
    create_table :contact_requests do |table|
      table.string :name, null: false
      table.string :email, null: false
      table.text :message
      table.timestamps
    end
  end
end
